"""The public surface of `fxflow.tree`."""

import inspect

import pytest

import fxflow.tree
from fxflow.core import tree as core


def test_public_names_are_those_of_core() -> None:
    assert fxflow.tree.__all__ == sorted(fxflow.tree.__all__)
    for name in fxflow.tree.__all__:
        assert inspect.unwrap(getattr(fxflow.tree, name)) is getattr(core, name)
    assert set(core.__all__) == set(fxflow.tree.__all__)


def test_flatten_takes_is_leaf_by_name() -> None:
    leaves, treedef = fxflow.tree.flatten([1, (2,)], is_leaf=lambda x: x == (2,))
    assert leaves == [1, (2,)]
    assert fxflow.tree.unflatten(treedef, leaves) == [1, (2,)]


def test_errors_name_the_function() -> None:
    with pytest.raises(ValueError, match=r"^tree\.map: at \['w'\] expected a tuple"):
        fxflow.tree.map(lambda x, y: x, {"w": (1, 2)}, {"w": [1, 2]})
