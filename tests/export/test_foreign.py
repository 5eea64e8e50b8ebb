"""Artifacts without a digest are read in a child process."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import errors, export, jit
from fxflow.export import foreign, records
from tests.export.artifacts import golden

PROGRAM = export.export(jit(fnp.tanh))(fnp.ones(3)).mlir_module_serialized


def test_programs_are_unchanged() -> None:
    blob = golden("waves")
    assert not records.has_digest(blob)
    child, here = export.deserialize(blob), export.deserialize(blob, trusted=True)
    assert child.has_vjp() == here.has_vjp()
    assert child.fun_name == here.fun_name
    args = np.float32([1, 2, 3]), {"a": 2.0, "b": np.arange(4), "c": np.arange(2)}
    found, want = child.call(*args), here.call(*args)
    np.testing.assert_array_equal(found[0]["y"], want[0]["y"])
    np.testing.assert_allclose(found[0]["y"], 2 * np.sin(args[0]), rtol=1e-5)


def test_a_reader_that_crashes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(foreign, "_CODE", crash)
    with pytest.raises(errors.ExportError, match="its reader exited with -11"):
        foreign.reread([PROGRAM])


def test_a_reader_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_CODE", "import time; time.sleep(600)")
    monkeypatch.setattr(foreign, "_DEADLINE", 0.5)
    with pytest.raises(errors.ExportError, match=r"took over 0\.5 s"):
        foreign.reread([PROGRAM])


def test_a_child_that_cannot_be_started_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreign.sys, "executable", "/nowhere/python")
    with pytest.raises(errors.ExportError, match="trusted=True"):
        foreign.reread([PROGRAM])


@pytest.mark.parametrize(
    "data", [b"\0" * 64, PROGRAM[: len(PROGRAM) // 2]], ids=["other", "cut"]
)
def test_damage_is_refused(data: bytes) -> None:
    with pytest.raises(errors.ExportError, match="program cannot be read"):
        foreign.reread([data])


@pytest.mark.soak
def test_many_mutations_are_refused_or_valid() -> None:
    assert refusals(300, seed=1) > 100


def refusals(count: int, seed: int) -> int:
    """Returns how many of `count` mutated programs are refused; others are valid."""
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(count):
        data = bytearray(PROGRAM)
        for at in rng.integers(4, len(data), rng.integers(1, 8)):
            data[at] ^= 1 << int(rng.integers(8))
        try:
            (program,) = foreign.reread([bytes(data)])
        except errors.ExportError:
            refused += 1
        else:
            assert program[:4] == b"ML\xefR"
    return refused


def test_parts_are_split_by_their_lengths() -> None:
    size = foreign._SIZE.pack
    assert foreign.parts(size(2) + b"ab" + size(0) + size(1) + b"c") == [
        b"ab",
        b"",
        b"c",
    ]
