"""`fxflow.typing`: what annotations need, and what the functions mean by it."""

import typing

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.typing import ArrayLike, Axes, DTypeLike, HasArray, HasDtype, ShapeLike


def test_the_module_and_its_names_are_listed() -> None:
    assert "typing" in dir(fxflow)
    assert set(fxflow.typing.__all__) <= set(dir(fxflow.typing))


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (1.0, True),
        (True, True),
        (np.ones(2), True),
        (np.float32(1), True),
        (fnp.ones(2), True),
        ([1.0], False),
        ("a", False),
    ],
)
def test_array_like_is_what_functions_take(value: object, is_one: bool) -> None:
    plain = tuple(kind for kind in typing.get_args(ArrayLike) if kind is not HasArray)
    plain = tuple(typing.get_origin(kind) or kind for kind in plain)
    assert isinstance(value, plain) == is_one
    if is_one:
        assert fnp.add(value, 1).dtype
    else:
        with pytest.raises(fxflow.errors.ArgumentError):
            fnp.add(value, 1)


def test_annotations_that_use_them_resolve() -> None:
    def f(x: ArrayLike, shape: ShapeLike, axis: Axes, dtype: DTypeLike) -> None: ...

    hints = typing.get_type_hints(f)
    assert HasArray in typing.get_args(hints["x"])
    assert HasDtype in typing.get_args(hints["dtype"])
    assert type(None) in typing.get_args(hints["axis"])


def test_objects_that_stand_for_an_array_or_a_dtype() -> None:
    class Held:
        def __fxflow_array__(self) -> fxflow.Array:
            return fnp.arange(3)

    class Typed:
        dtype = np.dtype("int8")

    assert fnp.sum(Held()) == 3
    assert fnp.zeros(2, Typed()).dtype == np.int8
