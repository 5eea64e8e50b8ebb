"""Types that must agree, and what is said when they do not."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow.core import tree
from fxflow.core.arrays.array import as_array
from fxflow.core.arrays.aval import Aval
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError
from fxflow.lax.control_flow import carry

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def test_leaves():
    leaves, treedef = carry.leaves_of({"a": 1, "b": (2.0,)}, "f: x")
    assert leaves == [1, 2.0]
    assert carry.paths_of(treedef) == ["['a']", "['b'][0]"]
    with pytest.raises(ArgumentError, match=r"f: x\['a'\] is 'no' of type str"):
        carry.leaves_of({"a": "no"}, "f: x")


def test_promotion_of_weak_parts():
    weak_int, weak_float = Aval((), I32, True), Aval((), F32, True)
    strong = Aval((), F32)
    assert carry.promoted([weak_int], [weak_float]) == [weak_float]
    assert carry.promoted([weak_int], [strong]) == [strong]
    assert carry.promoted([weak_float], [strong]) == [strong]
    assert carry.promoted([strong], [weak_float]) == [strong]
    assert carry.promoted([strong], [Aval((), I32)]) == [strong]


def test_conversion():
    value = as_array(1.0)
    assert carry.as_type(value, value.aval) is value
    out = carry.as_type(value, Aval((), F32))
    assert not out.weak_type


def test_a_carry_that_changes_type_or_structure_is_refused():
    treedef = tree.structure({"a": 0, "b": 0})
    avals = [Aval((2,), F32), Aval((), F32)]
    carry.require_carry("f", treedef, avals, avals)
    with pytest.raises(
        DtypeError, match=r"carry\['b'\] comes in as f32\[\] and is returned as i32\[\]"
    ):
        carry.require_carry("f", treedef, avals, [avals[0], Aval((), I32)])
    with pytest.raises(ShapeError, match=r"carry\['a'\].*; carry\['b'\].*reshape"):
        carry.require_carry("f", treedef, avals, [Aval((3,), F32), Aval((), I32)])
    with pytest.raises(TreeError, match=r"^oh: at \['a'\]"):
        carry.require_structure(
            tree.structure({"a": (0,)}), tree.structure({"a": [0]}), [0], "oh:"
        )
