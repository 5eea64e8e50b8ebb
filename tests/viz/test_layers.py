"""Groups of a graph, and the layers of their children."""

import fxflow
from fxflow import numpy as fnp
from fxflow.viz.layers import Bridge, ScopeGroup, grouped
from fxflow.viz.walk import CONSTANT, walk


def groups(root):
    yield root
    for child in root.children:
        if isinstance(child, ScopeGroup):
            yield from groups(child)


def laid_out(function, *args):
    items = walk(fxflow.make_graph(function)(*args).graph)
    root = grouped(items, "f")
    seen = [c for group in groups(root) for c in group.children if isinstance(c, int)]
    wanted = [i for i, item in enumerate(items) if item.operation != CONSTANT]
    assert sorted(seen) == sorted(root.items) == wanted
    for group in groups(root):
        placed = [c for row in group.rows for c in row]
        bends = [-1 - n for path in group.bends for n in path]
        assert sorted(placed) == sorted([*range(len(group.children)), *bends])
        assert len(group.bends) == len(group.edges)
    return items, root


def level(group):
    return {child: y for y, row in enumerate(group.rows) for child in row}


def test_edges_point_down():
    def f(x, y):
        return fnp.sin(x) * fnp.cos(x) + y

    items, root = laid_out(f, fnp.ones(3), fnp.ones(3))
    at = level(root)
    assert all(at[a] < at[b] for a, b, _ in root.edges)
    named = {items[c].operation: at[n] for n, c in enumerate(root.children)}
    assert named["sin"] == named["cos"] == named["mul"] - 1
    # An argument stands just above what reads it.
    assert at[1] == named["add"] - 1
    assert {label for _, _, labels in root.edges for label in labels} == {"f32[3]"}


def test_scopes_that_read_each_other():
    def f(x):
        for name in ("a", "b", "a"):
            with fxflow.named_scope(name):
                x = fnp.sin(x)
        return x

    _, root = laid_out(f, fnp.ones(3))
    (a, b) = (c for c in root.children if isinstance(c, ScopeGroup))
    assert (a.name, b.name) == ("a", "b")
    pairs = {(x, y) for x, y, _ in root.edges}
    assert (1, 2) in pairs and (2, 1) in pairs  # a cycle, of folded scopes
    bridges = [c for c in a.children if isinstance(c, Bridge)]
    assert sorted((c.incoming, c.label) for c in bridges) == [
        (False, "result_0"),
        (False, "sin"),
        (True, "argument_0"),
        (True, "sin"),
    ]


def test_large_groups_are_cut_and_many_bridges_counted():
    def f(x, *ys):
        for _ in range(1500):
            x = fnp.sin(x)
        with fxflow.named_scope("sum"):
            return sum(ys, x)

    _, root = laid_out(f, fnp.ones(3), *[fnp.ones(3)] * 15)
    for group in groups(root):
        own = [c for c in group.children if not isinstance(c, Bridge)]
        assert len(own) <= 60 and len(group.children) - len(own) <= 22
    assert any(group.name == "part 2" for group in groups(root))
    (total,) = (group for group in groups(root) if group.name == "sum")
    assert sum(isinstance(c, Bridge) and c.item < 0 for c in total.children) == 1


def test_an_empty_program_has_no_rows():
    assert grouped([], "empty").rows == []
