"""What functions that a user gives to a kernel take, in messages."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from fxflow.errors import ArgumentError
from fxflow.kernels.signatures import counted, reference_names, require_takes


def body(x: Any, o: Any, *, rows: int) -> None: ...


def test_references_have_the_names_of_the_body() -> None:
    assert reference_names(body, 1, 1, 0) == ["x (operand 0)", "o (result 0)"]
    assert reference_names(lambda *refs: None, 1, 1, 1) == [
        *("operand 0", "result 0", "scratch 0"),
    ]
    # A function of C has no signature.
    assert reference_names(print, 1, 0, 0) == ["operand 0"]


def test_numbers_in_words() -> None:
    assert counted(operand=2, result=1, scratch=2) == (
        "2 operands, 1 result and 2 scratch"
    )
    assert counted(operand=1, result=0) == "1 operand"
    assert counted(operand=0) == "nothing"


def test_functions_take_what_they_are_given() -> None:
    def takes(function: Any, count: int) -> None:
        require_takes("k", "f", function, count, counted(operand=count))

    for count in (2, 3, 9):
        takes(lambda x, y, *more: None, count)
    takes(lambda x, y=1: None, 1)
    takes(functools.partial(body, rows=1), 2)
    with pytest.raises(ArgumentError, match=r"takes \(x, y\), but is given 1 op"):
        takes(lambda x, y: None, 1)
    with pytest.raises(ArgumentError, match=r"given 3 operands: take each of them"):
        takes(body, 3)
