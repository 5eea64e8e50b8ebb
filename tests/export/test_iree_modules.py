"""Programs compiled by IREE give XLA's results; also tests that need no IREE."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, lax, random
from fxflow.core import tree
from fxflow.export import iree_modules as module
from tests.export.models import NETS

needs_iree = pytest.mark.skipif(
    importlib.util.find_spec("iree") is None, reason="pip install fxflow[iree]"
)


def allclose(got: Any, want: Any, atol: float = 1e-5) -> None:
    assert tree.structure(got) == tree.structure(want)
    for one, other in zip(tree.leaves(got), tree.leaves(want), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)


# -- with IREE -------------------------------------------------------------------------


@needs_iree
@pytest.mark.parametrize("name", NETS)
def test_answers_are_xlas(name: str) -> None:
    apply, params, inputs = NETS[name]()
    want = fxflow.jit(apply)(params, *inputs)
    taken = export.iree(fxflow.jit(apply).lower(params, *inputs))
    allclose(taken(params, *inputs), want)
    inside = export.iree(
        fxflow.jit(lambda *xs: apply(params, *xs)).lower(*inputs), target="local"
    )
    allclose(inside(*inputs), want)
    weights = sum(leaf.nbytes for leaf in tree.leaves(params))
    assert len(inside.data) > weights
    if name == "mnist":
        assert len(taken.data) < weights


@needs_iree
@pytest.mark.parametrize(
    ("target", "mark"),
    [
        ("x86-64", b"\x3e\x00"),
        ("arm64-linux", b"\xb7\x00"),
        ("arm64-android", b"\xb7\x00"),
        ("riscv64", b"\xf3\x00"),
        ("vulkan", b"\x03\x02\x23\x07"),
    ],
)
def test_modules_for_other_machines(target: str, mark: bytes, tmp_path: Path) -> None:
    """The file contains an ELF for that machine, or SPIR-V."""
    made = export.iree(fxflow.jit(fnp.sin).lower(fnp.ones(3)), target=target)
    path = tmp_path / "sin.vmfb"
    made.save(path)
    data = path.read_bytes()
    if target == "vulkan":
        assert mark in data
    else:
        at = data.index(b"\x7fELF")
        assert data[at + 18 : at + 20] == mark
    here = module._HOSTS.get(target, ())
    if target != "vulkan" and module.platform.machine().lower() not in here:
        with pytest.raises(errors.ArgumentError, match=f"compiled for {target}, but"):
            made(fnp.ones(3))


@needs_iree
def test_structure_is_kept(tmp_path: Path) -> None:
    def f(x: Any, *, more: Any) -> Any:
        return {"a": [x + more["b"][0], None], "c": (more["b"][1] * 2,)}

    given = fnp.ones(3), {"b": (fnp.zeros(3), fnp.arange(2))}
    made = export.iree(fxflow.jit(f).lower(given[0], more=given[1]))
    want = f(given[0], more=given[1])
    allclose(made(given[0], more=given[1]), want)
    made.save(tmp_path / "f.vmfb")
    again = export.load_iree(str(tmp_path / "f.vmfb"))
    allclose(again(given[0], more=given[1]), want)
    told = json.loads((tmp_path / "f.vmfb.json").read_text())
    assert [a["label"] for a in told["arguments"]] == list(made.labels)
    (tmp_path / "f.vmfb.json").write_text("{}")
    with pytest.raises(errors.ArgumentError, match="does not describe"):
        export.load_iree(tmp_path / "f.vmfb")


@needs_iree
def test_an_exported_program_becomes_a_module() -> None:
    apply, params, inputs = NETS["lstm"]()
    f = fxflow.jit(lambda *xs: apply(params, *xs))
    made = export.export(f, platforms=("cpu", "tpu"))(*inputs)
    loaded = export.deserialize(made.serialize())
    allclose(export.iree(loaded)(*inputs), f(*inputs))
    with pytest.raises(errors.ArgumentError, match="already includes its weights"):
        export.iree(loaded, quantize="int8")


@needs_iree
def test_unused_arguments_and_dtypes() -> None:
    def f(x: Any, unused: Any, flags: Any, half: Any, key: Any) -> Any:
        return flags & (x > 0), half * 2, random.key_data(key) + 1, x[:0]

    args = (
        fnp.arange(-1, 2),
        fnp.ones(4),
        fnp.array([True, True, False]),
        fnp.ones(3, fnp.bfloat16),
        random.key(3),
    )
    made = export.iree(fxflow.jit(f).lower(*args))
    assert made.kept == (0, 2, 3, 4)
    allclose(made(*args), f(*args))


@needs_iree
def test_compiler_errors_have_the_users_line() -> None:
    def refused(x: Any) -> Any:
        return lax.linalg.cholesky(x) + 1

    with pytest.raises(errors.CompileError, match=r"failed to legalize") as caught:
        export.iree(fxflow.jit(refused).lower(fnp.eye(3)))
    line = refused.__code__.co_firstlineno + 1
    assert f"{__file__}:{line} (refused)" in str(caught.value)
    assert caught.value.module_text is not None


@needs_iree
def test_an_unknown_compiler_option_is_refused() -> None:
    with pytest.raises(errors.CompileError, match="Unknown command line argument"):
        export.iree(fxflow.jit(fnp.sin).lower(1.0), options=["--no-such-option"])


@needs_iree
def test_invalid_arguments_are_refused() -> None:
    made = export.iree(fxflow.jit(lambda x: x + 1).lower(fnp.ones(3)))
    with pytest.raises(errors.ArgumentError, match=r"f32\[3\] as x, got f32\[4\]"):
        made(fnp.ones(4))
    with pytest.raises(errors.ArgumentError, match="structure"):
        made(fnp.ones(3), 1)
    with pytest.raises(errors.ArgumentError, match="not an array"):
        made("a")


@needs_iree
def test_quantized_weights_are_a_quarter() -> None:
    apply, params, inputs = NETS["mnist"]()
    want = apply(params, *inputs)
    lowered = fxflow.jit(lambda *xs: apply(params, *xs)).lower(*inputs)
    small = export.iree(lowered, quantize="int8")
    whole = export.iree(lowered)
    weights = sum(leaf.nbytes for leaf in tree.leaves(params))
    assert len(whole.data) - len(small.data) > 0.7 * weights
    allclose(small(*inputs), want, atol=0.1)
    # Small weights are not quantized.
    assert params["conv1"]["w"].nbytes < 4096
    but_first = {**export.quantize(params), "conv1": params["conv1"]}
    allclose(small(*inputs), apply(export.dequantize(but_first), *inputs))
    quantized = export.quantize(params)
    rounded = apply(export.dequantize(quantized), *inputs)
    taken = export.iree(
        fxflow.jit(lambda q, x: apply(export.dequantize(q), x)).lower(
            quantized, *inputs
        )
    )
    allclose(taken(quantized, *inputs), rounded)


# -- without IREE ----------------------------------------------------------------------


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"'arm64-linux'.* or 'vulkan'"):
        export.iree(fxflow.jit(fnp.sin).lower(1.0), target="toaster")
    with pytest.raises(errors.ArgumentError, match="'int8' or None"):
        export.iree(fxflow.jit(fnp.sin).lower(1.0), quantize="int3")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "iree",
        "iree.compiler",
        "iree.compiler.tools.binaries",
        "iree.runtime",
    ):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"fxflow\[iree\]"):
        export.iree(fxflow.jit(fnp.sin).lower(fnp.ones(2)))
    made = export.IreeModule(
        b"",
        name="f",
        target="local",
        in_tree=tree.structure(((0,), {})),
        in_avals=[fxflow.typeof(fnp.ones(2))],
        out_tree=tree.structure(0),
        out_avals=[fxflow.typeof(fnp.ones(2))],
        labels=["x"],
        kept=[0],
    )
    assert "f(f32[2]) -> (f32[2]), 0 bytes for local" in repr(made)
    with pytest.raises(ImportError, match=r"fxflow\[iree\]"):
        made(fnp.ones(2))


def test_unsupported_containers_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="string keys"):
        module._written(tree.structure({1: 0}), "f")
    nested = {"a": [0, (0, None)], "b": {}}
    told = json.loads(json.dumps(module._written(tree.structure(nested), "f")))
    assert tree.structure(module._read(told)) == tree.structure(nested)


def test_returned_keys_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="key_data"):
        export.iree(fxflow.jit(lambda x: random.key(x)).lower(1))
