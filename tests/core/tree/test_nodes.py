"""How a class becomes a container, and functions that are trees."""

import collections
import dataclasses
import functools
import pickle
from typing import Any

import pytest

from fxflow.core import tree
from fxflow.errors import ArgumentError, TreeError


def paths(x: Any) -> dict[str, Any]:
    return {tree.keystr(path): leaf for path, leaf in tree.leaves_with_path(x)}


class Box:
    def __init__(self, value: Any, label: str = "") -> None:
        self.value, self.label = value, label


def fresh(**methods: Any) -> Any:
    """A new class, since a class can be registered once."""
    return type("Fresh", (Box,), methods)


def test_register_pytree_node() -> None:
    cls = fresh()
    tree.register_pytree_node(
        cls, lambda b: ((b.value,), b.label), lambda label, c: cls(*c, label)
    )
    out = tree.map(lambda x: x + 1, cls([1, 2], "l"))
    assert (type(out), out.value, out.label) == (cls, [2, 3], "l")
    assert paths(cls([1])) == {"[<flat index 0>][0]": 1}
    assert tree.structure(cls(1, "a")) != tree.structure(cls(1, "b"))
    assert tree.leaves(type("Sub", (cls,), {})(1))[0].value == 1  # subclasses are not
    words = "expected a Fresh with auxiliary data 'a', got one with 'b'"
    with pytest.raises(ValueError, match=words):
        tree.map(lambda x, y: x, cls(1, "a"), cls(1, "b"))


def test_register_pytree_node_with_keys() -> None:
    cls = fresh()
    tree.register_pytree_node(
        cls,
        lambda b: ((b.value,), None),
        lambda _, c: cls(*c),
        lambda b: (((tree.GetAttrKey("value"), b.value),), None),
    )
    assert paths([cls({"k": 1})]) == {"[0].value['k']": 1}


def test_register_pytree_node_class() -> None:
    @tree.register_pytree_node_class
    class Own(Box):
        def tree_flatten(self) -> Any:
            return (self.value,), self.label

        @classmethod
        def tree_unflatten(cls, label: str, children: Any) -> Any:
            return cls(*children, label)

    out = tree.map(str, Own((1, 2), "l"))
    assert (type(out), out.value, out.label) == (Own, ("1", "2"), "l")


@pytest.mark.parametrize("fast", [False, True])
def test_register_pytree_with_keys(fast: bool) -> None:
    cls = fresh()
    tree.register_pytree_with_keys(
        cls,
        lambda b: (((tree.DictKey("v"), b.value),), b.label),
        lambda label, c: cls(*c, label),
        (lambda b: ((b.value,), b.label)) if fast else None,
    )
    assert paths(cls([1])) == {"['v'][0]": 1}
    assert tree.map(str, cls([1], "l")).value == ["1"]


@pytest.mark.parametrize("fast", [False, True])
def test_register_pytree_with_keys_class(fast: bool) -> None:
    methods = {
        "tree_flatten_with_keys": lambda b: (((tree.DictKey("v"), b.value),), None),
        "tree_unflatten": classmethod(lambda cls, _, children: cls(*children)),
    }
    if fast:
        methods["tree_flatten"] = lambda b: ((b.value,), None)
    cls = tree.register_pytree_with_keys_class(fresh(**methods))
    assert paths(cls([1])) == {"['v'][0]": 1}
    assert tree.map(str, cls([1])).value == ["1"]


def test_registration_errors() -> None:
    names = [
        "register_pytree_node",
        "register_pytree_with_keys",
    ]
    for name in names:
        register = getattr(tree, name)
        with pytest.raises(ArgumentError, match="expected a class, got the leaf 3"):
            register(3, lambda x: x, lambda x: x)
        with pytest.raises(ValueError, match="dict is a container already"):
            register(dict, lambda x: x, lambda x: x)
    for name in ("register_pytree_node_class", "register_pytree_with_keys_class"):
        with pytest.raises(ArgumentError, match=f"{name}: Fresh has no method tree_fl"):
            getattr(tree, name)(fresh())
    with pytest.raises(ArgumentError, match="has no method tree_unflatten"):
        tree.register_pytree_node_class(fresh(tree_flatten=lambda x: ((), None)))
    with pytest.raises(ValueError, match="list is a container already"):
        tree.register_static(list)
    with pytest.raises(ArgumentError, match="expected a class"):
        tree.register_dataclass("a")


def test_a_namedtuple_becomes_a_container_of_its_own_kind() -> None:
    pair = collections.namedtuple("pair", "value name")
    assert paths(pair(1, 2)) == {".value": 1, ".name": 2}
    before = tree.structure(pair(1, 2))
    tree.register_pytree_with_keys(
        pair,
        lambda p: ([("v", p.value)], p.name),
        lambda name, children: pair(*children, name),
    )
    assert tree.leaves(pair(1, "n")) == [1]
    assert tree.map(lambda x: 2 * x, pair(1, "n")) == pair(2, "n")
    assert [path for path, _ in tree.leaves_with_path(pair(1, "n"))] == [("v",)]
    assert tree.structure(pair(1, "n")) not in (before, tree.structure(pair(1, "m")))
    with pytest.raises(TreeError, match="auxiliary data 'n', got one with 'm'"):
        tree.map(lambda x, y: x, pair(1, "n"), pair(1, "m"))
    with pytest.raises(ValueError, match="pair"):
        tree.register_static(pair)


# -- dataclasses -----------------------------------------------------------------------


def test_register_dataclass_infers() -> None:
    @tree.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Layer:
        w: Any
        b: Any = 0.0
        name: str = tree.static(default="", metadata={"doc": "d"})
        size: int = dataclasses.field(default=1, metadata={"static": True})
        scale: Any = tree.static(metadata={"static": False}, default=None)  # noqa: RUF009

    x = Layer([1, 2], 3, "n", scale=4)
    assert paths(x) == {".w[0]": 1, ".w[1]": 2, ".b": 3, ".scale": 4}
    assert tree.map(lambda y: 2 * y, x) == Layer([2, 4], 6, "n", scale=8)
    assert tree.structure(x) != tree.structure(Layer([1, 2], 3, "m"))
    assert dataclasses.fields(Layer)[2].metadata["doc"] == "d"
    with pytest.raises(ValueError, match="Layer is a container already"):
        tree.register_dataclass(Layer)


def test_register_dataclass_by_name() -> None:
    @dataclasses.dataclass
    class State:
        a: int
        b: int = 5
        c: int = 7

    tree.register_dataclass(State, ["b"], ["a"], drop_fields=["c"])
    assert paths(State(1, 2, 3)) == {".b": 2}
    assert tree.map(str, State(1, 2, 3)) == State(1, "2", 7)  # type: ignore[arg-type]


def test_register_dataclass_of_another_class() -> None:
    cls = fresh()
    tree.register_dataclass(cls, data_fields=["value"], meta_fields=["label"])
    assert tree.map(str, cls(1, "l")).value == "1"


def test_register_dataclass_errors() -> None:
    @dataclasses.dataclass
    class Two:
        a: int
        b: int
        made: int = dataclasses.field(init=False, default=0)

    register = tree.register_dataclass
    with pytest.raises(ArgumentError, match="give both data_fields and meta_fields"):
        register(Two, ["a"])
    with pytest.raises(ArgumentError, match="Fresh is not a dataclass"):
        register(fresh())
    with pytest.raises(ValueError, match="fields not named: b; add them to"):
        register(Two, ["a"], [])
    with pytest.raises(ValueError, match=r"does not take c .*; the fields are a, b"):
        register(Two, ["a", "b", "c"], [])
    with pytest.raises(ValueError, match="named twice: a"):
        register(Two, ["a", "b"], ["a"])
    with pytest.raises(ValueError, match="does not take made"):
        register(Two)
    register(Two, drop_fields=["made"])
    assert tree.leaves(Two(1, 2)) == [1, 2]


def test_register_static() -> None:
    cls = tree.register_static(type("Mode", (str,), {}))
    assert tree.leaves([cls("train"), 1]) == [1]
    assert paths([cls("train"), 1]) == {"[1]": 1}
    assert tree.structure(cls("a")) == tree.structure(cls("a"))
    assert tree.structure(cls("a")) != tree.structure(cls("b"))
    assert tree.map(str, [cls("a"), 1]) == ["a", "1"]


# -- Partial ---------------------------------------------------------------------------


def add(*args: Any, **keywords: Any) -> tuple[Any, Any]:
    return args, keywords


def test_partial() -> None:
    f = tree.Partial(add, 1, x=[2])
    assert f(3, y=4) == ((1, 3), {"x": [2], "y": 4})
    assert isinstance(f, functools.partial)
    assert paths(f) == {".args[0]": 1, ".keywords['x'][0]": 2}
    g = tree.map(lambda y: 10 * y, f)
    assert type(g) is tree.Partial
    assert g(3) == ((10, 3), {"x": [20]})
    assert tree.structure(f) == tree.structure(g)
    assert tree.structure(f) != tree.structure(tree.Partial(max, 1, x=[2]))


def test_partial_of_partial_is_extended() -> None:
    f = tree.Partial(tree.Partial(add, 1, x=2), 3, x=4)
    assert f.func is add
    assert tree.leaves(f) == [1, 3, 4]
    assert f() == ((1, 3), {"x": 4})


def test_partial_keeps_a_functools_partial_whole() -> None:
    inner = functools.partial(add, 1, x=2)
    f = tree.Partial(inner, 3)
    assert tree.leaves(f) == [3]
    assert f() == ((1, 3), {"x": 2})
    assert tree.map(str, f)() == ((1, "3"), {"x": 2})
    same, other = tree.Partial(inner, 9), tree.Partial(functools.partial(add, 5), 3)
    assert tree.structure(f) == tree.structure(same)
    assert hash(tree.structure(f)) == hash(tree.structure(same))
    assert tree.structure(f) != tree.structure(other)
    assert "functools.partial" in repr(f.func)


def test_partial_can_be_pickled() -> None:
    for f in (tree.Partial(add, 1, x=2), tree.Partial(functools.partial(add, 1), 3)):
        back = pickle.loads(pickle.dumps(f))
        assert type(back) is tree.Partial
        assert back() == f()


def test_other_registries_still_pickle() -> None:
    from fxflow.devices.trees import PyTreeRegistry

    other = PyTreeRegistry()
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(other)
