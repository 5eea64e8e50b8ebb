"""Names, positions and labels of arguments."""

import pytest

from fxflow.core.errors import ArgumentError
from fxflow.transforms.arguments import (
    as_indices,
    as_names,
    leaf_labels,
    name_of,
    normalize_indices,
    parameter_names,
)


def fun(a, b=1, *rest, k=2):
    return a


def test_names_and_labels():
    import functools

    assert name_of(fun) == "fun"
    assert name_of(functools.partial(fun, 1)) == "fun"
    assert name_of(lambda x: x) == "lambda_"
    assert parameter_names(fun, 4) == ["a", "b", "rest[0]", "rest[1]"]
    assert parameter_names(print, 1)[0]
    labels = leaf_labels(fun, ({"w": 1, "b": (2, 3)},), {"k": [4]})
    assert labels == ["a['b'][0]", "a['b'][1]", "a['w']", "k[0]"]


def test_positions():
    assert as_indices(None, "argnums") == ()
    assert as_indices(2, "argnums") == (2,)
    assert as_indices([0, 2], "argnums") == (0, 2)
    assert normalize_indices((-1,), 3, "argnums", "f") == (2,)
    assert as_names("a", "names") == ("a",)
    for bad in ("x", 1.5, [None]):
        with pytest.raises(ArgumentError):
            as_indices(bad, "argnums")
    with pytest.raises(ArgumentError, match="argument names"):
        as_names([1], "names")
    with pytest.raises(ArgumentError, match="out of range"):
        normalize_indices((3,), 3, "argnums", "f")
