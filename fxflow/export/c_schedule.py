"""Parses the schedule of a program from IREE's `hal` dialect.

In the `hal` dialect, a program names the buffer and bytes of each fill, copy and
dispatch. This module parses its text, and rejects all other operations by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.errors import CompileError


class Span(NamedTuple):
    """A range of bytes of a buffer.

    Attributes:
      buffer: name of the buffer, such as `input0`, `constants0` or `work0`.
      offset: first byte.
      length: number of bytes.
    """

    buffer: str
    offset: int
    length: int


class Fill(NamedTuple):
    """Fills bytes with a pattern."""

    span: Span
    pattern: int
    width: int


class CopyStep(NamedTuple):
    """Copies bytes."""

    source: Span
    target: Span


class Dispatch(NamedTuple):
    """Runs a function on a grid of workgroups."""

    function: str
    counts: tuple[int, ...]
    constants: tuple[int, ...]
    bindings: tuple[Span, ...]


_IGNORED = re.compile(
    r"(?:%[\w#:, ]+ = )?(?:"
    r"util\.null|util\.status\.check_ok|hal\.fence\.\w+|hal\.device\.allocator|"
    r"hal\.buffer(?:_view)?\.assert|hal\.memory_type|hal\.buffer_usage|"
    r"hal\.element_type|hal\.encoding_type|hal\.device\.queue\.(?:execute|dealloca)|"
    r"hal\.command_buffer\.(?:create|finalize|execution_barrier)|"
    r"util\.global\.load (?:immutable )?@\w+ : !hal\.(?:device|executable))\b"
)
_SPAN = re.compile(r"\((%[\w#-]+) : !hal\.buffer\)\[(%[\w-]+), (%[\w-]+)\]")


@dataclass
class Schedule:
    """The steps of a program in order.

    Args:
      text: the program in IREE's `hal` dialect.
      name: name of the function, for messages.

    Attributes:
      steps: the steps.
      constants: bytes of the constant buffers by name.
      work: sizes of the temporary buffers by name.
      outputs: the bytes that hold the results.

    Raises:
      CompileError: the program has another operation.
    """

    text: str
    name: str
    steps: list[Fill | CopyStep | Dispatch] = field(default_factory=list)
    constants: dict[str, bytes] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    outputs: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._buffers: dict[str, tuple[str, int]] = {}  # buffer and offset
        self._views: dict[str, Span] = {}
        self._functions: dict[str, str] = {}
        self._globals = dict(self._read_constants())
        main = re.search(r"util\.func public @main\(.*?\n(.*?)\n  \}", self.text, re.S)
        assert main is not None
        for statement in _statements(main[1]):
            self._read(statement)

    def _read_constants(self) -> Iterator[tuple[str, str]]:
        found = re.finditer(r"\n  util\.initializer \{\n(.*?)\n  \}", self.text, re.S)
        for body in (match[1] for match in found):
            written = re.findall(
                r"util\.buffer\.constant .*?= (.*?)\n    %", body, re.S
            )
            if not written:
                continue
            stored = re.findall(
                r"util\.global\.store %[\w-]+, @(\w+) : !hal\.buffer", body
            )
            if len(written) != 1 or len(stored) != 1:
                raise CompileError(
                    f"{self.name}: IREE wrote constants that C cannot express"
                )
            buffer = f"constants{len(self.constants)}"
            self.constants[buffer] = bytes_of(written[0], self.name)
            yield stored[0], buffer

    def _read(self, statement: str) -> None:
        if _IGNORED.match(statement):
            return
        kind = re.search(r"(?:= )?([a-z_]+\.[a-z_.]+[a-z])", statement)
        known = {
            "arith.constant": self._constant,
            "util.global.load": self._load,
            "hal.buffer_view.buffer": self._input,
            "hal.device.queue.alloca": self._allocate,
            "hal.buffer.subspan": self._part,
            "util.optimization_barrier": self._same,
            "hal.command_buffer.fill_buffer": self._fill,
            "hal.command_buffer.copy_buffer": self._copy,
            "hal.executable.lookup.function": self._function,
            "hal.command_buffer.dispatch": self._dispatch,
            "hal.buffer_view.create": self._view,
            "util.return": self._return,
        }
        read = known.get(kind[1]) if kind else None
        if read is None:
            raise CompileError(
                f"{self.name}: a C library is straight-line code and cannot have "
                f"{kind[1] if kind else statement[:60]}: move the loop out of the "
                "function, or use iree with IREE's runtime"
            )
        read(statement)

    def _constant(self, text: str) -> None:
        name, value = _matched(r"(%[\w-]+) = arith\.constant (\S+)", text)
        named = {"true": 1, "false": 0}
        self._numbers[name] = named[value] if value in named else int(value)

    def _load(self, text: str) -> None:
        name, stored = _matched(r"(%[\w-]+) = util\.global\.load .*?@(\w+)", text)
        self._buffers[name] = self._globals[stored], 0

    def _input(self, text: str) -> None:
        name, number = _matched(r"(%[\w-]+) = \S+<%arg(\d+) :", text)
        self._buffers[name] = f"input{number}", 0

    def _allocate(self, text: str) -> None:
        name, size = _matched(r"(%[\w-]+) = .*!hal\.buffer\{(%[\w-]+)\}", text)
        buffer = f"work{len(self.work)}"
        self._buffers[name], self.work[buffer] = (buffer, 0), self._numbers[size]

    def _part(self, text: str) -> None:
        name, whole, offset = _matched(
            r"(%[\w-]+) = \S+<(%[\w#-]+) : !hal\.buffer>\[(%[\w-]+), ", text
        )
        buffer, start = self._buffers[whole]
        self._buffers[name] = buffer, start + self._numbers[offset]

    def _same(self, text: str) -> None:
        name, _, given = _matched(r"(%[\w-]+)(:\d+|) = \S+ ([^:]+) :", text)
        operands = given.split(", ")
        for i, operand in enumerate(operands):
            result = name if len(operands) == 1 else f"{name}#{i}"
            if operand in self._buffers:
                self._buffers[result] = self._buffers[operand]
            if operand in self._numbers:
                self._numbers[result] = self._numbers[operand]

    def _span(self, name: str, offset: str, length: str) -> Span:
        buffer, start = self._buffers[name]
        return Span(buffer, start + self._numbers[offset], self._numbers[length])

    def _spans(self, text: str) -> list[Span]:
        return [self._span(*found) for found in _SPAN.findall(text)]

    def _fill(self, text: str) -> None:
        pattern, width = _matched(r"pattern\((%[\w-]+) : i(\d+)\)", text)
        (span,) = self._spans(text)
        value = self._numbers[pattern] % (1 << int(width))
        self.steps.append(Fill(span, value, int(width) // 8))

    def _copy(self, text: str) -> None:
        side = r"\((%[\w#-]+) : !hal\.buffer\)\[(%[\w-]+)\]"
        a, at, b, to, length = _matched(
            rf"source{side} target{side} length\((%[\w-]+)\)", text
        )
        self.steps.append(
            CopyStep(self._span(a, at, length), self._span(b, to, length))
        )

    def _function(self, text: str) -> None:
        name, function = _matched(r"(%[\w-]+) = .*::@([^)]+)\)", text)
        self._functions[name] = function

    def _dispatch(self, text: str) -> None:
        function, counts = _matched(r"\[(%[\w-]+)\] workgroups\(\[(.*?)\]\)", text)
        given = re.search(r"constants\(\[(.*?)\]\)", text)
        constants = self._listed(given[1]) if given else ()
        at = text.index("bindings(")
        spans = tuple(self._spans(text[at:]))
        step = Dispatch(
            self._functions[function], self._listed(counts), constants, spans
        )
        self.steps.append(step)

    def _listed(self, names: str) -> tuple[int, ...]:
        return tuple(self._numbers[name] for name in names.split(", "))

    def _view(self, text: str) -> None:
        (name,) = _matched(r"(%[\w-]+) = ", text)
        at = re.search(r"buffer(\(.*?\]) shape", text)
        assert at is not None
        (self._views[name],) = self._spans(at[1])

    def _return(self, text: str) -> None:
        names = re.findall(r"%[\w-]+", text)
        for name in names:
            if name.startswith("%arg"):
                self.outputs.append(Span(f"input{name[4:]}", 0, -1))
            else:
                self.outputs.append(self._views[name])


def _matched(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text, re.S)
    if found is None:
        raise CompileError(f"IREE wrote an unknown form: {text[:200]}")
    return tuple(found.groups())


def _statements(body: str) -> Iterator[str]:
    """Yields statements, which may span several lines."""
    parts: list[str] = []
    depth = 0
    for line in body.splitlines():
        parts.append(line.strip())
        depth += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
        if depth <= 0:
            yield " ".join(parts)
            parts, depth = [], 0


# -- constants -------------------------------------------------------------------------


def bytes_of(written: str, name: str) -> bytes:
    """Returns the bytes of a constant, which may have several parts.

    Args:
      written: the constant as MLIR text.
      name: name of the function, for messages.

    Raises:
      CompileError: the text does not include the bytes.
    """
    parts = re.findall(r"dense<(.*?)> : (?:tensor|vector)<([^>]+)>", written, re.S)
    if not parts or "dense_resource" in written:
        raise CompileError(f"{name}: IREE wrote a constant that C cannot express")
    return b"".join(_elements(value, typed) for value, typed in parts)


def _elements(value: str, typed: str) -> bytes:
    *shape, kind = typed.split("x")
    if value.startswith('"0x'):
        return bytes.fromhex(value[3:-1])
    count = int(np.prod([int(n) for n in shape], dtype=np.int64))
    width = 1 if kind in ("i1", "index") else int(re.sub(r"\D", "", kind)) // 8
    if value.startswith("0x"):  # the bits of a float such as NaN
        return int(value, 16).to_bytes(width, "little") * count
    if kind.startswith(("f", "bf")):
        dtype = dtypes.dtype({"bf16": "bfloat16"}.get(kind, f"float{kind[1:]}"))
        return np.asarray(float(value), dtype).tobytes() * count
    number = {"true": 1, "false": 0}.get(value)
    number = int(value) if number is None else number
    return (number % (1 << 8 * width)).to_bytes(width, "little") * count
