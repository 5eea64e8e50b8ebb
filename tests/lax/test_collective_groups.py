"""Named axes, groups of places and how they are written for the compiler."""

import numpy as np
import pytest

from fxflow import lax, make_mesh, vmap
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import named_axes
from fxflow.core.runtime.lowering import Module
from fxflow.errors import ArgumentError
from fxflow.lax.collective_groups import (
    Groups,
    group_length,
    group_of,
    index_in_group,
    length,
    names_given,
    partition,
    shown,
)


@pytest.fixture(autouse=True)
def axes():
    with named_axes([("i", 2), ("j", 4)]):
        yield


def test_axis_names_are_checked_and_shown():
    assert names_given("i", "f") == ("i",)
    assert names_given(["j", "i"], "f") == ("j", "i")
    assert names_given((), "f") == ()
    assert length(("i", "j")) == 8 and length(()) == 1
    assert shown(("i",)) == "'i'" and shown(("i", "j")) == "('i', 'j')"
    with pytest.raises(ArgumentError, match="f: axis_name names the axis 'i' twice"):
        names_given(("i", "i"), "f")
    with pytest.raises(NameError, match="unbound axis name 'k'"):
        names_given(("i", "k"), "f")


def test_partition():
    assert partition(None, ("j",), "f", even=True) is None
    assert partition([range(4)], ("j",), "f", even=True) is None
    assert partition([[3, 2, 1, 0]], ("j",), "f", even=True) == ((3, 2, 1, 0),)
    halves = partition(np.arange(8).reshape(2, 4), ("i", "j"), "f", even=True)
    assert halves == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert group_length(("i", "j"), halves) == 4
    assert partition([[0], [], [1, 2, 3]], ("j",), "f", even=False) == ((0,), (1, 2, 3))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[0, 1], [2]], r"each index 0 … 3 of the axis 'j' once, got \[\[0, 1\], \[2"),
        ([[0, 1], [2, 2]], "once"),
        ([[0, 1], [2, 4]], "once"),
        ([[0], [1, 2, 3]], "equally long, got lengths 1, 3"),
        ([0, 1, 2, 3], "a list of lists of indices"),
    ],
)
def test_invalid_partitions_are_refused(groups, words):
    with pytest.raises(ArgumentError, match=words):
        partition(groups, ("j",), "f", even=True)


def test_tables():
    groups = ((3, 0), (1, 2))
    assert group_of(groups).tolist() == [0, 1, 1, 0]
    assert index_in_group(groups).tolist() == [1, 0, 1, 0]


def test_axes_along_which_results_vary():
    given, params = [frozenset({"i", "j"})], {"axes": ("i",)}
    with named_axes([("i", 2), ("j", 4)], tracked=True):
        assert table["psum"].vma(given, params) == {"j"}
        in_groups = {**params, "groups": ((0,),)}
        assert table["psum"].vma(given, in_groups) == {"i", "j"}
        assert table["ppermute"].vma([frozenset()], params) == {"i"}


def test_groups_of_devices_along_axes_of_a_mesh():
    mesh = make_mesh((2, 4), ("i", "j"))
    module = Module("cpu", devices=mesh.flat)
    module.manual = (("i", mesh), ("j", mesh))
    along = Groups(module, ("i",), "f")
    assert along.members.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    turned = Groups(module, ("j", "i"), "f")
    assert turned.members.tolist() == [[0, 4, 1, 5, 2, 6, 3, 7]]
    divided = Groups(module, ("j",), "f", ((0,), (3, 1, 2)))
    assert divided.members.tolist() == [
        [0, -1, -1],
        [3, 1, 2],
        [4, -1, -1],
        [7, 5, 6],
    ]
    assert divided.rows.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert along.dense() == "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>"
    assert along.channel != turned.channel
    with pytest.raises(ArgumentError, match=r"f over 'v' cannot be compiled"):
        Groups(module, ("v",), "f")
    module.manual = (("i", mesh), ("k", make_mesh((8,), ("k",))))
    with pytest.raises(ArgumentError, match="of different meshes"):
        Groups(module, ("i", "k"), "f")


def test_lowering_has_the_axes_in_scope():
    mesh = make_mesh((2,), ("only",))
    module = Module("cpu", devices=mesh.flat)
    module.manual = (("only", mesh),)
    with Groups(module, ("only",), "f").scope():
        assert length(("only",)) == 2
    with pytest.raises(NameError):
        length(("only",))


def test_a_name_that_is_a_number():
    """Any hashable is a name."""
    out = vmap(lambda x: lax.psum(x, 0), axis_name=0)(np.arange(3.0))
    assert out.tolist() == [3.0] * 3
