"""`fxflow.stages`: the classes of the stages of compilation."""

import fxflow
import fxflow.numpy as fnp
from fxflow import stages


def test_the_classes_are_those_of_what_jit_gives() -> None:
    f = fxflow.jit(lambda x: x + 1)
    assert isinstance(f, stages.Wrapped)
    traced = f.trace(fnp.ones(3))
    assert isinstance(traced, stages.Traced)
    lowered = traced.lower()
    assert isinstance(lowered, stages.Lowered)
    options: stages.CompilerOptions = {"xla_cpu_enable_fast_math": False}
    assert isinstance(lowered.compile(options), stages.Compiled)
    assert set(stages.__all__) <= set(dir(stages)) and "stages" in dir(fxflow)
