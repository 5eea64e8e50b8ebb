"""Docstrings completed with what a family shares."""

import inspect
from typing import Any

from fxflow.core.docs import shared

family = shared("""
    Args:
      a: an array.
      axis: along which.
      keepdims: whether the axis stays,
        with length 1.

    Returns:
      An array.

    Raises:
      AxisError: there is no such axis.
      ShapeError: there are no elements.

    Source: `numpy.{name}`.
""")


def test_a_summary_alone_is_completed() -> None:
    @family
    def least(a: Any, keepdims: bool = False) -> Any:
        """Returns the least."""

    assert inspect.getdoc(least) == inspect.cleandoc("""Returns the least.

        Args:
          a: an array.
          keepdims: whether the axis stays,
            with length 1.

        Returns:
          An array.

        Raises:
          AxisError: there is no such axis.
          ShapeError: there are no elements.

        Source: `numpy.least`.
    """)


def test_own_words_stay() -> None:
    @family
    def f(x: Any, y: Any, axis: Any, *others: Any, a: Any) -> Any:
        """Does.

        It does: with `x: y`.

        Args:
          a: its own array.
          x, y: two others.
          *others: more.

        Returns:
          Its own.

        Raises:
          ShapeError: its own reason.
          DtypeError: one more.

        Example:
          >>> 1
          1
        """

    assert inspect.getdoc(f) == inspect.cleandoc("""Does.

        It does: with `x: y`.

        Args:
          x, y: two others.
          axis: along which.
          a: its own array.
          *others: more.

        Returns:
          Its own.

        Raises:
          AxisError: there is no such axis.
          ShapeError: its own reason.
          DtypeError: one more.

        Example:
          >>> 1
          1

        Source: `numpy.f`.
    """)


def test_own_errors_have_a_place() -> None:
    @shared("""
        Raises:
          AxisError: there is no such axis.
          ...
          PlacementError: there is no such device.
    """)
    def f() -> None:
        """Does.

        Raises:
          DtypeError: one more.
        """

    assert inspect.getdoc(f) == inspect.cleandoc("""Does.

        Raises:
          AxisError: there is no such axis.
          DtypeError: one more.
          PlacementError: there is no such device.
    """)


def test_options_are_arguments() -> None:
    @shared("""
        Args:
          values: what to add.
          **options: see the class.
    """)
    def f(values: Any, **options: Any) -> None:
        """Does."""

    doc = inspect.getdoc(f) or ""
    assert doc.endswith("Args:\n  values: what to add.\n  **options: see the class.")


def test_families_stack() -> None:
    @family
    @shared("""
        Args:
          axis: the last one.

        Reference: a paper.
    """)
    def f(a: Any, axis: int) -> Any:
        """Does."""

    doc = inspect.getdoc(f) or ""
    assert "  a: an array.\n  axis: the last one.\n\nReturns" in doc
    assert doc.endswith("Source: `numpy.f`.\n\nReference: a paper.")


def test_without_docstrings_nothing_is_done() -> None:
    def f(a: Any) -> Any: ...

    assert family(f) is f
    assert f.__doc__ is None
