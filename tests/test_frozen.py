"""Classes of named values."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import pytest

from fxflow._frozen import Frozen


class Point(Frozen):
    """A place."""

    kind: ClassVar[str] = "point"

    x: int
    y: int = 0

    def moved(self, by: int) -> Point:
        return self.replace(x=self.x + by)


class Named(Point):
    """A place with a name."""

    name: str = "here"


class Thing(Frozen, eq=False):
    """One that is equal to itself alone."""

    parts: list[Any]


def test_values_and_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(x=2, y=3).y) == (1, 0, 3)
    assert Point(1).moved(2) == Point(3)
    assert vars(Named(y=2, x=1)) == {"x": 1, "y": 2, "name": "here"}
    # The order is that of the class: parameters of operations are shown so.
    assert list(vars(Named(name="a", y=2, x=1))) == ["x", "y", "name"]
    assert repr(Named(1, name="a")) == "Named(x=1, y=0, name='a')"


def test_equality_and_hash() -> None:
    assert Point(1, 2) == Point(1, y=2) != Point(2, 2)
    assert Point(1) != Named(1) and Point(1) != (1, 0)
    assert hash(Point(1, 2)) == hash(Point(1, y=2))
    one = Thing([1])
    assert one == one != Thing([1]) and hash(one) == hash(one)


def test_frozen_objects_refuse_assignment() -> None:
    with pytest.raises(AttributeError, match="Point does not change: use replace"):
        Point(1).x = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1, 2, 3), {}), ((1,), {"z": 2}), ((1,), {"x": 1})]
)
def test_invalid_names_are_refused(
    args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    with pytest.raises(TypeError, match="Point takes x, y"):
        Point(*args, **kwargs)


def test_missing_values() -> None:
    with pytest.raises(TypeError, match="Point takes x, y"):
        Point(y=1)  # type: ignore[call-arg]


def test_copies_and_pickles_are_equal() -> None:
    point = Point(1, 2)
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
