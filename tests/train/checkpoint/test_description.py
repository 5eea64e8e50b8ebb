"""`tree.json` is readable, exact, and checked."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow import numpy as fnp
from fxflow import optim
from fxflow.errors import CheckpointError, DamagedCheckpointError
from fxflow.train.checkpoint import description
from fxflow.train.checkpoint.description import Description, Entry

PYTHON = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
)


@given(PYTHON)
def test_python_values_are_exact(value: Any) -> None:
    entry = description.entry_of("a", value)
    said = Description("files", 0, (entry,)).encode()
    found = description.python_value(description.decode(said, "here").entries[0])
    assert type(found) is type(value) and repr(found) == repr(value)


TREES = st.recursive(
    st.one_of(st.integers(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(TREES)
def test_structures_are_rebuilt(state: Any) -> None:
    leaves = [leaf for _, leaf in description.named_leaves({"all": state})]
    outline = json.loads(json.dumps(description.outline({"all": state})))
    assert description.rebuilt(outline, leaves) == {"all": state}


KEYS = [
    (None, "a", 1, True, 0.5, float("inf"), 1 - 2j, b"\xff\x00"),
    ((1, "a"), (1, (None, 2.5)), ()),
    (np.int64(2**40), np.float32(0.1), np.uint8(3), np.bool_(True)),
]


@pytest.mark.parametrize("key", [key for row in KEYS for key in row], ids=repr)
def test_keys_of_dictionaries_are_restored(key: Any) -> None:
    outline = json.loads(json.dumps(description.outline({key: 3})))
    ((found, _),) = description.rebuilt(outline, [3]).items()
    assert type(found) is type(key) and found == key


def test_keys_of_other_classes_require_like() -> None:
    outline = json.loads(json.dumps(description.outline({Fraction(1, 3): 3})))
    with pytest.raises(CheckpointError, match=r"key Fraction\(1, 3\) of type Fraction"):
        description.rebuilt(outline, [3])


def test_other_containers_become_dictionaries() -> None:
    state = optim.sgd(0.1, momentum=0.9).init({"w": fnp.ones(2)})
    outline = description.outline(state)
    assert outline["tuple"][0] == {"TraceState": [["trace", {"dict": [["w", 0]]}]]}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (Entry("a", "bfloat16", (2, 3)), "bf16[2,3]"),
        (Entry("a", "uint32", (4, 2), key="threefry2x32"), "threefry2x32 keys"),
        (Entry("a", python="int", value="3"), "int"),
    ],
)
def test_types_are_formatted_for_messages(entry: Entry, text: str) -> None:
    assert str(entry).startswith(text)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"3", b"\xff", b'{"checksum": 1}'])
def test_files_that_are_not_descriptions_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"here: tree\.json is damaged"):
        description.decode(data, "here")
