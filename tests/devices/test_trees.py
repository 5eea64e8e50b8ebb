from collections import OrderedDict, defaultdict, namedtuple

import pytest

from fxflow.devices import trees
from fxflow.devices.trees import registry

Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (None, []),
        ((), []),
        (1, [1]),
        ([1, None, (2,)], [1, 2]),
        ({"b": 1, "a": 2}, [2, 1]),
        (Pair(1, [2]), [1, 2]),
        (OrderedDict(b=1, a=2), [1, 2]),
        (defaultdict(list, {"b": 1, "a": 2}), [2, 1]),
    ],
)
def test_flatten_and_back(tree: object, leaves: list[object]) -> None:
    found, structure = trees.flatten(tree)
    assert found == leaves
    back = structure.unflatten(found)
    assert back == tree
    assert type(back) is type(tree)


def test_order_and_factory_survive() -> None:
    ordered = OrderedDict(b=1, a=2)
    leaves, structure = registry.flatten(ordered)
    assert list(structure.unflatten(leaves)) == ["b", "a"]
    leaves, structure = registry.flatten(defaultdict(int, a=1))
    assert structure.unflatten(leaves)["new"] == 0


def test_paths() -> None:
    tree = {"o": OrderedDict(z=1), "d": defaultdict(int, q=2), "l": [Pair(3, 4)]}
    paths = [path for path, _ in registry.flatten_with_path(tree)[0]]
    assert paths[0] == (trees.DictKey("d"), trees.DictKey("q"))
    assert paths[1] == (
        trees.DictKey("l"),
        trees.SequenceKey(0),
        trees.GetAttrKey("a"),
    )
    assert paths[3] == (trees.DictKey("o"), trees.DictKey("z"))


def test_tuple_of_structures_and_all_leaves() -> None:
    _, one = registry.flatten([1, 2])
    both = trees.treedef_tuple([one, one])
    assert both == registry.flatten(([0, 0], [0, 0]))[1]
    assert trees.all_leaves([1, "a"])
    assert not trees.all_leaves([1, (2,)])
    assert not trees.all_leaves([None])


def test_the_registry_is_not_shared() -> None:
    from jaxlib._jax import pytree

    class Node:
        pass

    registry.register_node(Node, lambda n: ((), None), lambda aux, children: Node())
    assert registry.flatten(Node())[0] == []
    assert len(pytree.default_registry().flatten(Node())[0]) == 1
