"""Every operation can be exported and loaded; CI draws some.

The samples are the conformance suite's. What was exported gives the same bits as the
jitted function, since it is the same program.
"""

import numpy as np
import pytest

import fxflow
from fxflow import export, random, tree
from fxflow.core.arrays import dtypes
from fxflow.errors import ExportError
from tests.conformance import cases
from tests.sweeps.sampling import sample

#: Refused in words: effects, and calls back into Python.
STAY = {"check", "python_callback"}
#: For two devices, with arguments that the samples leave on one (`test_exporting`).
DIVIDED = {"pcast", "shard_map"}
#: GPUs call the host for them.
HOSTED = {"eig", "geqp3", "hessenberg", "pivoted_qr", "schur"}
FIRST = list({case.primitive.name: case for case in reversed(cases.cases())}.values())
LEAVE = [c for c in FIRST if c.primitive.name not in STAY | DIVIDED]
ON_GPUS = [c for c in LEAVE if c.primitive.name not in HOSTED]


def bits(x):
    return np.asarray(random.key_data(x) if dtypes.is_key(x.dtype) else x)


@pytest.mark.parametrize("case", sample(LEAVE, 60, of="export"), ids=lambda c: c.id)
def test_a_loaded_operation_gives_the_same_result(case):
    problem = cases.problem(case)
    function = fxflow.jit(problem.function)
    made = export.export(function)(*problem.args)
    found = export.deserialize(made.serialize()).call(*problem.args)
    # Exported programs have kernels in their portable form.
    with fxflow.config.override(passes="none"):
        expected = function(*problem.args)
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize("case", sample(ON_GPUS, 100, of="gpu"), ids=lambda c: c.id)
def test_operations_make_only_stable_custom_calls(case):
    problem = cases.problem(case)
    exporter = export.export(fxflow.jit(problem.function), platforms=("cuda",))
    assert exporter(*problem.args).platforms == ("cuda",)


@pytest.mark.parametrize("name", sorted(STAY))
def test_effects_cannot_be_exported(name):
    (case,) = (c for c in FIRST if c.primitive.name == name)
    problem = cases.problem(case)
    with pytest.raises(ExportError, match=r"has effects|calls back into Python"):
        export.export(fxflow.jit(problem.function))(*problem.args)
