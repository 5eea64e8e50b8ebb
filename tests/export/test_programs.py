"""Self-contained modules give the function's results."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, random
from fxflow.devices.compile import mlir_module
from fxflow.export.programs import lines_of, program_of
from tests.export.models import NETS


def test_captured_values_are_included() -> None:
    w, flags, key = (
        fnp.arange(40.0).reshape(20, 2),
        fnp.array([True, False]),
        random.key(1),
    )

    def f(x: Any) -> Any:
        return fnp.where(flags, x @ w, 0) + random.uniform(key), w[:0]

    program = program_of(fxflow.jit(f).lower(fnp.ones(20)), "test")
    assert "@main(%x0: tensor<20xf32>)" in program.text
    assert [c.shape for c in program.consts] == [(20, 2), (2,), (2,)]
    assert "captured_main" in str(mlir_module(program.text))  # it is well-formed


def test_operations_name_their_source_lines() -> None:
    apply, params, inputs = NETS["mnist"]()
    program = program_of(fxflow.jit(apply).trace(params, *inputs), "test")
    (line,) = lines_of(program, "jit_cnn_apply/conv1/conv_general_dilated")
    assert "mnist.py" in line and "(conv)" in line
    assert lines_of(program, "jit_cnn_apply/conv9/sin") == []


def test_references_and_effects_are_refused() -> None:
    ref = fxflow.new_ref(fnp.zeros(2))
    cases = [
        (lambda x: ref[...] + x, "references"),
        (lambda x: (fxflow.debug.print("{}", x), x)[1], "effects"),
    ]
    for f, words in cases:
        with pytest.raises(errors.ArgumentError, match=words):
            program_of(fxflow.jit(f).lower(fnp.ones(2)), "test")
    with pytest.raises(errors.ArgumentError, match="got function"):
        program_of(lambda x: x, "test")
    assert np.all(ref[...] == 0)


def test_exported_programs_use_the_cpus_program() -> None:
    """The CPU's program is chosen from those of two platforms; sizes are static."""
    made = export.export(fxflow.jit(fnp.sin), platforms=("tpu", "cpu"))(fnp.ones(3))
    program = program_of(export.deserialize(made.serialize()), "test")
    assert "@main(%x0: tensor<3xf32>)" in program.text
    assert "%c0 = stablehlo.constant dense<1> : tensor<i32>" in program.text
    assert "captured_main" in str(mlir_module(program.text))
