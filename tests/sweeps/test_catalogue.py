"""The catalogue is complete, and each of its calls works."""

import numpy as np
import pytest

from tests.sweeps.catalogue import (
    Call,
    catalogue,
    exempt,
    public_functions,
)
from tests.sweeps.sampling import sample

CALLS = catalogue()


def test_every_public_function_is_listed() -> None:
    listed = {call.name for call in CALLS} | set(exempt())
    assert not sorted(set(public_functions()) - listed)


def test_nothing_else_is_listed() -> None:
    public = set(public_functions())
    assert not sorted({call.name for call in CALLS} - public)
    assert not sorted(set(exempt()) & {call.name for call in CALLS})


def test_names_are_unique() -> None:
    names = [str(call) for call in CALLS]
    assert not sorted({name for name in names if names.count(name) > 1})


def same(got: object, want: object) -> bool:
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(map(same, got, want))
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False
    wide = complex if want.dtype.kind == "c" or got.dtype.kind == "c" else float
    tolerance = {"rtol": 2e-4, "atol": 2e-4, "equal_nan": True}
    return np.allclose(got.astype(wide), want.astype(wide), **tolerance)


@pytest.mark.parametrize("call", sample(CALLS, 200, of="ordinary"), ids=str)
def test_ordinary_call(call: Call) -> None:
    """A call with ordinary arrays works, and gives what NumPy or SciPy gives."""
    arrays = call.draw()
    got = call.run(*arrays)
    if call.oracle is not None and not call.random:
        want = call.expected(*arrays)
        assert same(got, want), f"{got} != {want}"
