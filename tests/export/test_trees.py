"""Structures, serialized by registered names without pickle."""

import collections
from typing import NamedTuple

import pytest

from fxflow import export, tree
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import flat, trees


class State(NamedTuple):
    mean: object
    count: object


class Other(NamedTuple):
    mean: object


@tree.register_pytree_node_class
class Box:
    def __init__(self, inside, label):
        self.inside, self.label = inside, label

    def tree_flatten(self):
        return (self.inside,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)

    def __repr__(self):  # no address: each process must name the tests alike
        return f"Box({self.inside}, {self.label!r})"


export.register_namedtuple_serialization(State, serialized_name="tests.State")
export.register_pytree_node_serialization(
    Box,
    serialized_name="tests.Box",
    serialize_auxdata=str.encode,
    deserialize_auxdata=bytes.decode,
)


def written(value):
    return flat.write({2: trees.to_table(tree.structure(value))}, b"TEST")


def read(data, count):
    return trees.from_table(flat.Buffer(data).root.table(2), count)


@pytest.mark.parametrize(
    "value",
    [
        1,
        None,
        (),
        {},
        (1, [2, {"b": 3, "a": (None, 4)}], ()),
        State(1, {"x": 2}),
        Box([1, 2], "label"),
        collections.OrderedDict(b=1, a=2),
    ],
    ids=str,
)
def test_round_trip(value):
    leaves, treedef = tree.flatten(value)
    assert read(written(value), len(leaves)) == treedef


def test_unregistered_containers_are_refused():
    with pytest.raises(ExportError, match="register_namedtuple_serialization"):
        written(Other(1))
    with pytest.raises(ExportError, match="register_pytree_node_serialization"):
        written(collections.defaultdict(list, a=1))
    with pytest.raises(ExportError, match="the key 1"):
        written({1: 2})
    with pytest.raises(ExportError, match="not strings"):
        written(collections.OrderedDict({1: 2}))


def test_names_are_registered_once():
    with pytest.raises(ArgumentError, match="already registered"):
        export.register_namedtuple_serialization(State, serialized_name="tests.New")
    with pytest.raises(ArgumentError, match="is the name of State"):
        export.register_namedtuple_serialization(Other, serialized_name="tests.State")
    with pytest.raises(ArgumentError, match="expected a namedtuple"):
        export.register_namedtuple_serialization(Box, serialized_name="tests.Box2")
    with pytest.raises(ArgumentError, match="is not a pytree"):
        export.register_pytree_node_serialization(
            int,
            serialized_name="tests.int",
            serialize_auxdata=bytes,
            deserialize_auxdata=bytes,
        )


def table(fields):
    return flat.Buffer(flat.write({2: fields}, b"TEST")).root.table(2)


def kind(number, **more):
    return {0: flat.Number("int8", number), **{int(k[1:]): v for k, v in more.items()}}


@pytest.mark.parametrize(
    ("fields", "count", "message"),
    [
        (kind(0), 2, "has 1 leaves"),
        (kind(9), 0, "unknown kind, 9"),
        (kind(0, _1=[kind(0)]), 1, "has parts"),
        (kind(4, _1=[kind(0)]), 1, "keys"),
        (kind(4, _1=[kind(0)] * 2, _2=["a", "a"]), 2, "keys"),
        (kind(4, _1=[kind(0)] * 2, _2=["b", "a"]), 2, "not in order"),
        (kind(5, _3="tests.Unknown"), 0, "'tests.Unknown', which is not registered"),
        (kind(5, _1=[kind(0)], _3="tests.State", _4=b'["mean", "count"]'), 1, "parts"),
        (kind(5, _3="tests.State", _4=b'["a"]'), 0, "its fields are"),
        (kind(5, _1=[kind(0)], _3="tests.Box", _4=b"\xff"), 1, "cannot be read"),
    ],
)
def test_damaged_structures_are_refused(fields, count, message):
    with pytest.raises(ExportError, match=message):
        trees.from_table(table(fields), count)


def test_structures_that_are_too_deep_are_refused(monkeypatch):
    monkeypatch.setattr(trees, "_DEEPEST", 20)
    fields = kind(0)
    for _ in range(30):
        fields = kind(2, _1=[fields])
    with pytest.raises(ExportError, match="too deeply"):
        trees.from_table(table(fields), 1)
    with pytest.raises(ExportError, match="missing"):
        trees.from_table(None, 0)
