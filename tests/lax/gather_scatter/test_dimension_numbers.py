"""What gather and scatter share."""

import pickle

import numpy as np
import pytest

from fxflow.errors import ArgumentError
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (None, GatherScatterMode.FILL_OR_DROP),
        ("fill", GatherScatterMode.FILL_OR_DROP),
        ("drop", GatherScatterMode.FILL_OR_DROP),
        ("clip", GatherScatterMode.CLIP),
        ("promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS),
        (GatherScatterMode.CLIP, GatherScatterMode.CLIP),
    ],
)
def test_modes_are_known_by_name(name: object, mode: GatherScatterMode) -> None:
    assert GatherScatterMode.from_any(name) is mode


@pytest.mark.parametrize("bad", ["wrap", 3, ["clip"]])
def test_unknown_mode(bad: object) -> None:
    with pytest.raises(ArgumentError, match=r"unknown mode .*: expected one of 'clip'"):
        GatherScatterMode.from_any(bad)


def test_numbers_hash_by_value_whatever_sequences_they_are_made_of() -> None:
    one = GatherDimensionNumbers([1], np.array([0]), (np.int64(0),))
    two = GatherDimensionNumbers((1,), (0,), (0,))
    assert one == two
    assert hash(one) == hash(two)
    assert hash(pickle.loads(pickle.dumps(one))) == hash(two)
    assert one != GatherDimensionNumbers((0,), (0,), (0,))
    assert (
        str(one)
        == "(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))"
    )


def test_numbers_must_be_integers() -> None:
    with pytest.raises(ArgumentError, match="offset_dims must be a sequence of integ"):
        GatherDimensionNumbers(1, (0,), (0,))
    with pytest.raises(ArgumentError, match="ScatterDimensionNumbers: inserted_window"):
        ScatterDimensionNumbers((), (0.5,), (0,))


def test_gather_and_scatter_numbers_are_each_other() -> None:
    numbers = GatherDimensionNumbers((1,), (0,), (0,), (2,), (1,))
    assert numbers.scatter().gather() == numbers
    assert numbers.scatter().window_sizes(3, (4, 5)) == (1, 5, 1)
