"""Sizes read from text: `b`, `2*t + 1`, `floordiv(n, 2)`.

What artifacts say of axes, what users give to `export.symbolic_shape`, and what stands
in brackets in programs that are being written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fxflow.core.sizes.size import NO_SCOPE, OPERATIONS, Scope, named
from fxflow.errors import FxflowError

_TOKEN = r"\s*(?:(\d{1,18})|([A-Za-z_][A-Za-z_0-9]*)|(//|[-+*^(),%]))\s*"
#: What an artifact may say of one size; a person's expressions are shorter.
_LONGEST = 1000
_DEEPEST = 50
_LARGEST_POWER = 16


def parsed(text: str, scope: Scope = NO_SCOPE) -> Any:
    """Returns the size that a text says, an int where that is one.

    Args:
      text: sums, products and powers of names and integers, `floordiv(a, b)` or
        `a // b`, `mod(a, b)` or `a % b`, `max(a, b)`, `min(a, b)`.
      scope: that the names are of.

    Raises:
      ValueError: it is not a size; the message is the text.
    """
    # Nearly all are plain numbers.
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    reader = _Reader(text, scope)
    try:
        size = reader.sum(0)
    except (FxflowError, ZeroDivisionError) as error:
        raise ValueError(f"{text[:80]!r}: {error}") from None
    if reader.at != len(reader.tokens):
        raise reader.wrong()
    return size


class _Reader:
    """Reads tokens of one text."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text, self.scope, self.at = text, scope, 0
        self.tokens = list(self._split())

    def wrong(self) -> ValueError:
        return ValueError(repr(self.text[:80]))

    def _split(self) -> Iterator[str]:
        if len(self.text) > _LONGEST or not self.text.strip():
            raise self.wrong()
        at, token = 0, re.compile(_TOKEN)
        while at < len(self.text):
            found = token.match(self.text, at)
            if not found:
                raise self.wrong()
            yield found[found.lastindex or 0]
            at = found.end()

    def take(self, *wanted: str) -> str:
        """Returns the next token if it is one of these, else ""."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def sum(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self.wrong()
        total: Any = 0
        sign = self.take("-") or "+"
        while sign:
            term = self.product(depth)
            total = total + term if sign == "+" else total - term
            sign = self.take("+", "-")
        return total

    def product(self, depth: int) -> Any:
        product = self.power(depth)
        while operation := self.take("*", "//", "%"):
            factor = self.power(depth)
            if operation == "*":
                product = product * factor
            else:
                product = OPERATIONS["mod" if operation == "%" else "floordiv"](
                    product, factor
                )
        return product

    def power(self, depth: int) -> Any:
        base = self.factor(depth)
        if not self.take("^"):
            return base
        exponent = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if not exponent.isdigit() or not 1 <= int(exponent) <= _LARGEST_POWER:
            raise self.wrong()
        self.at += 1
        return base ** int(exponent)

    def factor(self, depth: int) -> Any:
        if depth > _DEEPEST or self.at >= len(self.tokens):
            raise self.wrong()
        token = self.tokens[self.at]
        self.at += 1
        if token.isdigit():
            return int(token)
        if token == "-":
            return -self.factor(depth + 1)
        if token == "(":
            inner = self.sum(depth + 1)
            self.after(")")
            return inner
        if not token.isidentifier():
            raise self.wrong()
        if not self.take("("):
            return named(token, self.scope)
        if token not in OPERATIONS:
            raise self.wrong()
        first = self.sum(depth + 1)
        self.after(",")
        second = self.sum(depth + 1)
        self.after(")")
        return OPERATIONS[token](first, second)

    def after(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.wrong()
