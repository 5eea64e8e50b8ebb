"""Answers of operations that know of no axis and no memory."""

from __future__ import annotations

import pytest

from fxflow.core.ir.primitive import Primitive, table


def test_named_axes_are_those_of_the_parameters():
    assert not table["sin"].uses_axis("i", {})
    assert table["psum"].uses_axis("i", {"axes": ("i", "j")})
    assert not table["psum"].uses_axis("k", {"axes": ("i", "j")})


def test_no_mesh_and_no_memory():
    base = Primitive()
    assert base.mesh({}) is None
    assert not base.names_memory({})
    assert base.memories(None, [], None) is None
    with base.inside({}) as nothing:
        assert nothing is None
    with pytest.raises(NotImplementedError):
        base.batch_named("i", 1, [], [])


def test_results_differ_where_operands_do():
    given = [frozenset("i"), frozenset("j")]
    assert Primitive().vma(given, {}) == {"i", "j"}
