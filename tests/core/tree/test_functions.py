"""Trees: taking apart, putting together, and saying where two differ."""

import collections
import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.core import tree
from fxflow.errors import ArgumentError, TreeError

Point = collections.namedtuple("Point", "x y")

TREES = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Point, inner, inner),
        st.lists(st.tuples(st.text(max_size=2), inner), max_size=3).map(
            collections.OrderedDict
        ),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(
            lambda d: collections.defaultdict(int, d)
        ),
    ),
    max_leaves=12,
)


def is_none(x: Any) -> bool:
    return x is None


# -- properties ------------------------------------------------------------------------


@given(TREES)
def test_round_trip(x: Any) -> None:
    values, treedef = tree.flatten(x)
    back = tree.unflatten(treedef, values)
    assert back == x
    assert type(back) is type(x)
    assert tree.leaves(x) == values
    assert tree.structure(x) == treedef == tree.structure(back)
    assert hash(treedef) == hash(tree.structure(back))
    assert treedef.num_leaves == len(values)


@given(TREES)
def test_paths_agree_with_leaves(x: Any) -> None:
    pairs, treedef = tree.flatten_with_path(x)
    assert [leaf for _, leaf in pairs] == tree.leaves(x)
    assert treedef == tree.structure(x)
    assert len({path for path, _ in pairs}) == len(pairs)
    assert tree.leaves_with_path(x) == pairs


@given(TREES)
def test_map_keeps_structure(x: Any) -> None:
    assert tree.map(lambda leaf: leaf, x) == x
    doubled = tree.map(lambda a, b: (a, b), x, x)
    assert tree.flatten_up_to(tree.structure(x), doubled) == [
        (leaf, leaf) for leaf in tree.leaves(x)
    ]


@given(TREES)
def test_a_leaf_is_a_prefix_of_everything(x: Any) -> None:
    values = tree.broadcast_prefix(0, x)
    assert values == [0] * len(tree.leaves(x))
    assert tree.structure(tree.broadcast(0, x)) == tree.structure(x)
    assert tree.broadcast(x, x) == x


@given(TREES)
def test_structures_can_be_pickled(x: Any) -> None:
    treedef = tree.structure(x)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef


@given(TREES, TREES)
def test_where_trees_differ_agrees_with_the_registry(x: Any, y: Any) -> None:
    treedef = tree.structure(x)
    try:
        treedef.flatten_up_to(y)
    except ValueError:
        with pytest.raises(TreeError, match=r"^tree: at .* expected .*, got "):
            tree.flatten_up_to(treedef, y)
    else:
        assert len(tree.flatten_up_to(treedef, y)) == treedef.num_leaves


# -- functions -------------------------------------------------------------------------


def test_flatten_takes_a_predicate() -> None:
    assert tree.flatten([1, None], is_none)[0] == [1, None]
    assert tree.flatten([1, None], is_leaf=is_none)[0] == [1, None]


def test_is_leaf_everywhere() -> None:
    x = {"a": None, "b": (1, 2)}

    def pair(y: Any) -> bool:
        return isinstance(y, tuple)

    assert tree.leaves(x, is_leaf=pair) == [(1, 2)]
    assert tree.leaves(x, is_leaf=is_none) == [None, 1, 2]
    assert tree.structure(x, is_leaf=pair) == tree.structure({"a": None, "b": 0})
    assert tree.map(len, x, is_leaf=pair) == {"a": None, "b": 2}
    assert tree.reduce(lambda n, y: n + len(y), x, 1, is_leaf=pair) == 3
    assert tree.all([(0,)], is_leaf=pair)
    assert not tree.all([(0,)])
    assert tree.reduce_associative(max, x, is_leaf=pair) == (1, 2)
    assert tree.all_leaves([1, (2,)], is_leaf=pair)
    assert not tree.all_leaves([1, [2]], is_leaf=pair)
    assert [y for _, y in tree.flatten_with_path(x, is_leaf=pair)[0]] == [(1, 2)]
    deep = tree.leaves_with_path(
        {"a": [1, [2]]}, is_leaf=lambda path, _: len(path) == 1, is_leaf_takes_path=True
    )
    assert [(tree.keystr(path), y) for path, y in deep] == [("['a']", [1, [2]])]


def test_map_passes_subtrees_of_the_others() -> None:
    assert tree.map(lambda a, b: (a, b), [1, 2], [3, [4, 5]]) == [(1, 3), (2, [4, 5])]


def test_map_with_path() -> None:
    x = {"a": (1, 2), "b": Point(3, None)}
    names = tree.map_with_path(
        lambda path, a, b: f"{tree.keystr(path)}={a}{b}", x, tree.map(str, x)
    )
    assert names == {
        "a": ("['a'][0]=11", "['a'][1]=22"),
        "b": Point("['b'].x=33", None),
    }
    short = tree.map_with_path(
        lambda path, y: len(y),
        {"a": (1, 2)},
        is_leaf=lambda path, _: len(path) == 1,
        is_leaf_takes_path=True,
    )
    assert short == {"a": 2}


def test_reduce() -> None:
    assert tree.reduce(lambda a, b: a + b, ["a", ("b", "c")]) == "abc"
    assert tree.reduce(lambda a, b: a + b, [], 5) == 5
    assert tree.reduce(lambda a, b: b, [1], None) == 1
    with pytest.raises(TypeError, match="no leaves; pass initializer"):
        tree.reduce(lambda a, b: a, [None])
    assert tree.reduce_associative(lambda a, b: (a, b), [1]) == 1
    assert tree.reduce_associative(lambda a, b: a, [], identity=0) == 0
    with pytest.raises(TypeError, match="no leaves; pass identity"):
        tree.reduce_associative(lambda a, b: a, [])


def test_transpose() -> None:
    outer, inner = tree.structure({"a": 0, "b": 0}), tree.structure((0, [0]))
    x = {"a": (1, [2]), "b": (3, [4])}
    expected = ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])
    assert tree.transpose(outer, inner, x) == expected
    assert tree.transpose(outer, None, x) == expected
    assert tree.transpose(tree.structure([]), inner, []) == ([], [[]])


class Flat:
    """Its children are the leaves of what it holds."""

    def __init__(self, children, treedef) -> None:
        self.children, self.treedef = children, treedef

    def __eq__(self, other) -> bool:
        return type(other) is Flat and self.tree_flatten() == other.tree_flatten()

    def tree_flatten(self):
        return self.children, self.treedef

    @classmethod
    def of(cls, held):
        return cls(*tree.flatten(held))

    @classmethod
    def tree_unflatten(cls, treedef, children):
        return cls(list(children), treedef)


tree.register_pytree_node_class(Flat)


def test_transpose_of_containers_that_flatten_what_they_hold() -> None:
    outer, inner = tree.structure(Flat.of({"a": 0, "b": 0})), tree.structure([0, 0])
    got = tree.transpose(outer, inner, Flat.of({"a": [1, 2], "b": [3, 4]}))
    assert got == [Flat([1, 3], outer.node_data()[1]), Flat([2, 4], got[1].treedef)]
    with pytest.raises(TreeError, match="expected a Flat of 2, got a Flat of 3"):
        tree.transpose(outer, inner, Flat.of({"a": [1, 2], "b": [3]}))
    nested = tree.structure({"a": Flat.of({"a": 0, "b": 0})})
    with pytest.raises(TreeError, match="expected a list of 2"):
        tree.transpose(tree.structure([0, 0]), nested, (1, 2, 3, 4))


def test_transpose_errors() -> None:
    outer = tree.structure([0, 0])
    with pytest.raises(TreeError, match=r"subtree 1: at the root expected a tuple"):
        tree.transpose(outer, None, [(1, 2), (3,)])
    with pytest.raises(TreeError, match="expected a list of 2, got a list of 1"):
        tree.transpose(outer, None, [(1, 2)])
    with pytest.raises(TreeError, match="expected each subtree to have structure"):
        tree.transpose(outer, tree.structure((0, 0)), [(1, 2), (3, [4])])
    with pytest.raises(TreeError, match="inner_treedef is needed"):
        tree.transpose(tree.structure([]), None, [])


def test_broadcast() -> None:
    assert tree.broadcast([1, 2], [[3, 4], {"a": 5}]) == [[1, 1], {"a": 2}]
    assert tree.broadcast_prefix((0, None), (1, [2, 3]), is_none) == [0, None, None]
    with pytest.raises(TreeError, match=r"^tree.broadcast: at the root expected a"):
        tree.broadcast([1, 2], [3])
    with pytest.raises(TreeError, match=r"^vmap in_axes: at \[1\] expected None"):
        tree.broadcast_prefix((0, None), (1, 2), name="vmap in_axes")


def test_structures_answer_for_leaves_and_children() -> None:
    leaf, nothing = tree.structure(0), tree.structure(None)
    assert tree.treedef_is_leaf(leaf)
    assert not tree.treedef_is_leaf(nothing)
    assert not tree.treedef_is_leaf(tree.structure([0]))
    assert tree.treedef_children(tree.structure((0, None))) == [leaf, nothing]
    assert tree.treedef_children(leaf) == []
    assert tree.treedef_tuple([leaf, nothing]) == tree.structure((0, None))
    assert tree.all_leaves([1, 2])
    assert not tree.all_leaves([1, None])
    assert tree.is_tree_node(dict)
    assert not tree.is_tree_node(int)


def test_one_level_is_flattened() -> None:
    children, keys = tree.flatten_one_level({"b": [1], "a": 2})
    assert (list(children), list(keys)) == ([2, [1]], ["a", "b"])
    pairs, _ = tree.flatten_one_level_with_keys(Point(1, [2]))
    assert pairs == [(tree.GetAttrKey("x"), 1), (tree.GetAttrKey("y"), [2])]
    for function in (tree.flatten_one_level, tree.flatten_one_level_with_keys):
        with pytest.raises(TreeError, match="expected a container, got the leaf 3"):
            function(3)


def test_dicts_are_sorted_and_others_keep_their_order() -> None:
    assert tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree.leaves(collections.OrderedDict(b=1, a=2)) == [1, 2]
    with pytest.raises(TreeError, match=r"must sort, but it has 'a' \(str\), 2 \(int"):
        tree.leaves([0, ({"a": 1, 2: 3},)])


def test_unflatten_errors() -> None:
    treedef = tree.structure([0, 0])
    with pytest.raises(TreeError, match=r"expected 2 leaves for .*, got 1"):
        tree.unflatten(treedef, [1])
    with pytest.raises(TreeError, match="got 3"):
        tree.unflatten(treedef, iter([1, 2, 3]))
    with pytest.raises(ArgumentError, match="expected a structure first, got a list"):
        tree.unflatten([1, 2], treedef)


# -- errors that say where -------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (
            {"params": {"w": (1, 2)}},
            {"params": {"w": [1, 2, 3]}},
            "at ['params']['w'] expected a tuple of 2, got a list of 3",
        ),
        ([1, (2, 3)], [1, (2, 3, 4)], "at [1] expected a tuple of 2, got a tuple of 3"),
        ([1], 5, "at the root expected a list of 1, got the leaf 5 of type int"),
        (
            {"a": 1, "b": 2},
            {"a": 1, "c": 2},
            "expected a dict with keys 'a', 'b', got one without 'b' and with the "
            "unexpected 'c'",
        ),
        (
            {},
            {"a": 1},
            "expected a dict with keys (none), got one with the unexpected 'a'",
        ),
        ({"a": [1]}, {"a": print}, "at ['a'] expected a list of 1, got the leaf print"),
        ([None], [1], "at [0] expected None, got the leaf 1 of type int (None is a"),
        (Point(1, 2), (1, 2), "expected a Point of 2, got a tuple of 2"),
        ((1, Point(1, [2])), (1, Point(1, 2)), "at [1].y expected a list of 1"),
        (
            collections.OrderedDict(a=1, b=2),
            collections.OrderedDict(b=2, a=1),
            "expected a OrderedDict with auxiliary data ('a', 'b'), got one with",
        ),
        ([1], "x" * 100, "got the leaf 'xxxx"),
    ],
)
def test_where_trees_differ(x: Any, y: Any, words: str) -> None:
    with pytest.raises(TreeError) as caught:
        tree.map(lambda a, b: a, x, y)
    assert str(caught.value).startswith("tree.map: at ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300
    with pytest.raises(ValueError, match=r"^tree\.map_with_path: at "):
        tree.map_with_path(lambda path, a, b: a, x, y)


def test_values_that_are_not_structures_are_refused() -> None:
    with pytest.raises(ArgumentError, match="treedef_tuple: expected structures"):
        tree.treedef_tuple([None, 1])
