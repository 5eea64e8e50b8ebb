"""Random programs over processes have the bits that they have over devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow.dataflow import Cluster
from fxflow.errors import PlacementError
from tests.programs.drawing import draw
from tests.programs.operations import Api
from tests.programs.running import applies, over_tasks
from tests.sweeps import sampling

SEEDS = range(200) if sampling.whole else range(sampling.seed, sampling.seed + 4)


def bits(answer: list[Any]) -> list[Any]:
    return [(a.dtype, a.shape, np.ascontiguousarray(a).tobytes()) for a in answer]


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("meshes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_processes_have_the_bits_of_devices(
    cluster: Cluster, seed: int, meshes: bool, gradient: bool
) -> None:
    with fxflow.config.override(x64=True):
        api = Api("fxflow")
        program = draw(api, seed)
        if gradient and not applies("gradient dataflow", program):
            pytest.skip("the program has no gradient")
        arguments = program.arguments()
        want = over_tasks(None, gradient, meshes)(api, program, arguments)
        try:
            got = over_tasks(cluster, gradient, meshes)(api, program, arguments)
        except PlacementError as error:
            assert "programs only" in str(error)
            return
    assert bits(got) == bits(want)
