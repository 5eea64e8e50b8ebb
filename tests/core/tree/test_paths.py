"""Key paths as text, and descriptions in errors."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from fxflow.core.arrays.aval import Aval
from fxflow.core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    structure,
)
from fxflow.core.tree.paths import describe, difference, keys_of, keystr, written

PATH = (DictKey("a"), SequenceKey(1), GetAttrKey("n"), FlattenedIndexKey(2))


def test_keystr() -> None:
    assert keystr(PATH) == "['a'][1].n[<flat index 2>]"
    assert keystr(PATH, simple=True) == "a1n2"
    assert keystr(PATH, simple=True, separator="/") == "a/1/n/2"
    assert keystr(PATH, separator="/") == "['a']/[1]/.n/[<flat index 2>]"
    assert keystr(()) == ""
    assert keystr(("own key",), simple=True) == "own key"


def test_keys_of_each_kind_of_node() -> None:
    assert keys_of([1, 2]) == [SequenceKey(0), SequenceKey(1)]
    assert keys_of({"b": 1, "a": 2}) == [DictKey("a"), DictKey("b")]
    assert keys_of(None) == []
    pair = namedtuple("pair", "x y")
    assert keys_of(pair(1, 2)) == [GetAttrKey("x"), GetAttrKey("y")]


def test_difference() -> None:
    treedef = structure((0, [0]))
    assert difference(treedef, (1, [(2, 3)])) is None
    found = difference(treedef, (1, 2), (GetAttrKey("state"),))
    assert found == "at .state[1] expected a list of 1, got the leaf 2 of type int"
    many = structure(dict.fromkeys("abcdefghij", 0))
    assert "… (10 in all)" in (difference(many, {}) or "")


def test_describe() -> None:
    assert describe((1, 2)) == "a tuple of 2"
    assert describe({"a": 1}) == "a dict with keys 'a'"
    assert describe(None) == "None"
    assert describe(np.zeros((2, 3), "f4")) == "the leaf ndarray float32[2,3]"
    assert describe(SimpleNamespace(aval="f32[3]")) == "the leaf f32[3]"
    assert describe(describe) == "the leaf describe"
    assert describe(3) == "the leaf 3 of type int"


def test_structures_as_messages_show_them() -> None:
    assert written(structure({"a": (1, [2])})) == "{'a': (*, [*])}"
    assert written(structure(3)) == "*"
    assert "PyTreeDef" not in describe(Aval((2,), np.dtype("float32")))
    assert describe(Aval((2,), np.dtype("float32"))) == "the leaf f32[2]"
