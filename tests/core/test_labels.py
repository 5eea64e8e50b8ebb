"""What messages call arguments."""

from __future__ import annotations

from fxflow.core import tree
from fxflow.core.labels import (
    dotted_names,
    leaf_labels,
    listed,
    parameter_names,
    signature_of,
    tree_labels,
)


def fun(a, b=1, *rest, k=2):
    return a


def test_names_of_parameters():
    assert parameter_names(fun, 4) == ["a", "b", "rest[0]", "rest[1]"]
    assert parameter_names(print, 1)[0]
    assert signature_of(3) is None


def test_labels_of_leaves():
    args, kwargs = ({"w": 1, "b": (2, 3)},), {"k": [4]}
    expected = ["a['b'][0]", "a['b'][1]", "a['w']", "k[0]"]
    assert leaf_labels(fun, args, kwargs) == expected
    assert tree_labels(fun, tree.structure((args, kwargs)), True) == expected
    assert tree_labels(fun, tree.structure(args)) == expected[:3]


def test_names_for_files():
    args, kwargs = ({"w": 1, "b": (2, 3)}, 4, 5), {"k": [4]}
    in_tree = tree.structure((args, kwargs))
    names = dotted_names(in_tree, tree_labels(fun, in_tree, True))
    assert names == ["a.b.0", "a.b.1", "a.w", "b", "rest.0", "k.0"]


def test_in_words():
    assert listed(["x"], "f") == "argument x of f"
    assert listed(["x", "y"], "f") == "arguments x and y of f"
    assert listed(list("abcde"), "f") == "arguments a, b, c and 2 others of f"
