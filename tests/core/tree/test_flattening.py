"""Trees that cannot be taken apart: a clear error, and a process that goes on."""

from __future__ import annotations

import bisect
import sys

import pytest

import fxflow
from fxflow.core import tree
from fxflow.core.tree.flattening import failed
from fxflow.errors import TreeError

# Python 3.12 and 3.13 allow 10,000 levels in C, whatever the limit for calls is.
DEEP = 5 * max(sys.getrecursionlimit(), 10_000)


def nested(depth, leaf=1.0):
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def cyclic():
    x = []
    x.append(x)
    return x


def flattens(depth):
    try:
        tree.flatten(nested(depth))
    except TreeError:
        return False
    return True


def room():
    """Returns how many calls, and how many levels inside jaxlib, are left."""

    def call(n):
        try:
            return call(n + 1)
        except RecursionError:
            return n

    if sys.version_info < (3, 12):  # where levels in C count as calls
        return call(0)
    return call(0), bisect.bisect(range(DEEP), False, key=lambda n: not flattens(n))


class Broken:
    pass


def _fail(*_):
    raise KeyError("broken")


tree.register_pytree_node(Broken, _fail, _fail, _fail)


@pytest.mark.parametrize("deep", [cyclic, lambda: nested(DEEP)])
@pytest.mark.parametrize(
    "use",
    [
        tree.flatten,
        tree.leaves,
        tree.structure,
        lambda x: tree.flatten(x, lambda _: False),
        lambda x: tree.map(lambda y: y, x, is_leaf=lambda y: y is None),
        tree.flatten_with_path,
        lambda x: tree.flatten_with_path(x, lambda _: False),
        lambda x: tree.leaves_with_path(x, lambda path, _: False, True),
        lambda x: fxflow.jit(lambda y: y)(x),
        lambda x: fxflow.jit(lambda y, n: y, static_argnums=1)(x, 1),
        lambda x: fxflow.vmap(lambda y: y)(x),
        lambda x: fxflow.grad(lambda y: y)(x),
        lambda x: fxflow.device_put(1.0, x),
        lambda x: fxflow.device_put(x),
        lambda x: fxflow.lax.scan(lambda c, _: (c, None), x, length=1),
        lambda x: fxflow.jit(lambda y: x)(1.0),
    ],
)
def test_too_deep(use, deep) -> None:
    x = deep()
    before = room()
    with pytest.raises(TreeError, match="holds itself, or containers are nested"):
        use(x)
    assert room() == before


@pytest.mark.parametrize(
    ("leaf", "error"), [({1: 0, "a": 1}, ValueError), (Broken(), KeyError)]
)
@pytest.mark.parametrize(
    "use",
    [
        tree.flatten,
        lambda x: tree.flatten(x, lambda _: False),
        tree.flatten_with_path,
        lambda x: fxflow.jit(lambda y: y)(x),
        lambda x: fxflow.jit(lambda *, y: y)(y=x),
    ],
)
def test_errors_inside_cost_nothing(use, leaf, error) -> None:
    before = room()
    for _ in range(3):
        with pytest.raises(error):
            use(nested(20, leaf))
        assert room() == before


def test_a_predicate_that_raises() -> None:
    def is_leaf(x):
        if x == 1.0:
            raise KeyError("no")
        return False

    before = room()
    for _ in range(3):
        with pytest.raises(KeyError):
            tree.flatten(nested(20), is_leaf)
        with pytest.raises(KeyError):
            tree.flatten_with_path(nested(20), is_leaf)
        assert room() == before


def test_a_predicate_may_cut_a_cycle() -> None:
    x = cyclic()
    x.append(2)
    leaves, treedef = tree.flatten((x, 1), is_leaf=lambda y: y is x)
    assert leaves == [x, 1]
    assert treedef == tree.structure((0, 0))


def test_predicates_are_asked_once_in_order() -> None:
    asked = []

    def is_leaf(path, x):
        asked.append((tree.keystr(path), x))
        return x == (2,)

    pairs, _ = tree.flatten_with_path({"b": 1, "a": [(2,), None]}, is_leaf, True)
    assert [(tree.keystr(p), x) for p, x in pairs] == [("['a'][0]", (2,)), ("['b']", 1)]
    assert [p for p, _ in asked] == ["", "['a']", "['a'][0]", "['a'][1]", "['b']"]


def test_failed_gives_back_what_was_raised() -> None:
    error = ValueError("x")
    assert failed(error, [1]) is error
