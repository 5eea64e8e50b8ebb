"""Objects with `__fxflow_array__` in the place of arrays, through every function."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow.numpy as fnp
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.results import alike
from tests.sweeps.sampling import sample

# What asks for the object rather than for the array that it stands for.
EXEMPT = {"numpy.iterable"}


class Wrapper:
    """Stands for an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __fxflow_array__(self) -> Any:
        return fnp.asarray(self.value)


CALLS = [c for c in catalogue() if c.operands and c.name not in EXEMPT]


@pytest.mark.parametrize("call", sample(CALLS, 150, of="protocol"), ids=str)
def test_objects_that_stand_for_arrays(call: Call) -> None:
    arrays = call.draw()
    got = call.run(*map(Wrapper, arrays))
    if not call.random:
        assert alike(got, call.run(*map(fnp.asarray, arrays)), exact=True)
