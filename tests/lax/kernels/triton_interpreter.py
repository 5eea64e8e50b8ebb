"""Runs the compiler's Triton IR with NumPy: what a GPU would compute.

It knows the operations that the compiler writes, not the whole dialect. Memory that no
program has written holds NaN, or the least integer; an access outside of an array is an
error.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


class Pointers(NamedTuple):
    memory: np.ndarray
    at: Any


class Op(NamedTuple):
    results: list[str]
    name: str
    text: str
    regions: list[Region]


class Region(NamedTuple):
    arguments: list[str]
    ops: list[Op]


def run_module(module: Any, operands: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Returns the results of a `TritonModule`, partial sums added.

    Args:
      module: the kernel's.
      operands: arrays.
      outs: types of the results.
    """
    lines = [line.strip() for line in module.text.split("\n")][2:-3]
    region, _ = _parse(lines, 0)
    memory = [np.array(x).reshape(-1) for x in operands]
    results = []
    for aval, parts in zip(outs, module.parts, strict=True):
        shape = (parts, *aval.shape) if parts else aval.shape
        dtype = np.dtype(aval.dtype)
        integer = dtype.kind in "iu"
        fill: Any = np.iinfo(dtype).min if integer else dtype.kind == "b" or np.nan
        results.append(np.full(shape, fill, dtype))
    memory += [x.reshape(-1) for x in results]
    memory = [x.view(f"i{x.itemsize}") if x.dtype.kind in "bu" else x for x in memory]
    for program in range(module.programs):
        env: dict[str, Any] = {f"%a{i}": Pointers(x, 0) for i, x in enumerate(memory)}
        with np.errstate(all="ignore"):
            _run(region, {**env, "program": np.int32(program)})
    return [
        x.sum(0, dtype=x.dtype) if parts else x
        for x, parts in zip(results, module.parts, strict=True)
    ]


# -- parsing ---------------------------------------------------------------------------


def _parse(lines: Sequence[str], at: int) -> tuple[Region, int]:
    """Reads a region up to the line that closes it."""
    region = Region([], [])
    while at < len(lines) and not lines[at].startswith("}"):
        line = lines[at]
        at += 1
        if line.startswith("^bb0("):
            region.arguments.extend(re.findall(r"(%\w+):", line))
            continue
        head, _, rest = line.partition(" = ") if line[0] == "%" else ("", "", line)
        results = _names(head)
        name = re.split(r"[ (<]", rest.replace('"', ""), maxsplit=1)[0]
        regions = []
        if line.endswith("{"):
            while True:
                inner, at = _parse(lines, at)
                regions.append(inner)
                closing = lines[at]
                at += 1
                rest += " " + closing
                if not closing.endswith("{"):
                    break
        region.ops.append(Op(results, name, rest, regions))
    return region, at


def _names(head: str) -> list[str]:
    name, _, count = head.partition(":")
    return [f"{name}#{i}" for i in range(int(count))] if count else [name] * bool(name)


@functools.cache
def _uses(text: str) -> list[str]:
    return re.findall(r"%[\w#]+", text)


@functools.cache
def _types(text: str) -> list[tuple[tuple[int, ...], Any]]:
    found = []
    for tensor, plain in re.findall(
        r"tensor<((?:\d+x)+[\w!.<>]+?)>(?![>\w])|(?<=[:(>, ])\b(b?[if]\d+)\b", text
    ):
        *dims, kind = tensor.split("x") if tensor else [plain]
        found.append((tuple(map(int, dims)), DTYPES.get(kind)))
    return found


# -- running ---------------------------------------------------------------------------


def _run(region: Region, env: dict[str, Any]) -> tuple[str, list[Any]]:
    """Runs a region; returns what ends it, and its values.

    No two values of a module have one name, so all regions share `env`.
    """
    for op in region.ops:
        if op.name.endswith(("yield", "return", "condition")):
            values = op.text.split(" : ")[0]
            return op.name, [env[v] for v in _uses(values)]
        found = RULES.get(op.name, _math)(op, env)
        env.update(zip(op.results, found, strict=True))
    return "", []


def _given(op: Op, env: dict[str, Any]) -> list[Any]:
    return [env[v] for v in _uses(op.text)]


def _constant(op: Op, env: dict[str, Any]) -> list[Any]:
    text = op.text.split(" ", 1)[1]
    if ":" not in text:
        return [np.bool_(text == "true")]
    shape, dtype = _types(text)[-1]
    literal = re.sub(r"dense<|>.*| :.*", "", text)
    if literal in ("true", "false"):
        value: Any = literal == "true"
    elif literal.startswith("0x"):
        bits = np.array(int(literal, 16), f"u{np.dtype(dtype).itemsize}")
        value = bits.view(dtype)
    else:
        value = int(literal)
    return [np.full(shape, value, dtype)]


def _shaped(op: Op, env: dict[str, Any]) -> list[Any]:
    (x,) = _given(op, env)
    shape = tuple(map(int, re.findall(r"(?:\d+(?=x))", op.text.split("->")[1])))
    change = np.reshape if op.name == "tt.reshape" else np.broadcast_to
    if type(x) is Pointers:
        return [Pointers(x.memory, np.broadcast_to(x.at, shape))]
    return [change(x, shape)]


def _trans(op: Op, env: dict[str, Any]) -> list[Any]:
    order = re.search(r"i32: ([\d, ]+)>", op.text)
    assert order is not None
    return [np.transpose(_given(op, env)[0], [*map(int, order[1].split(","))])]


def _addptr(op: Op, env: dict[str, Any]) -> list[Any]:
    pointers, offset = _given(op, env)
    return [Pointers(pointers.memory, pointers.at + offset)]


def _load(op: Op, env: dict[str, Any]) -> list[Any]:
    pointers, *rest = _given(op, env)
    mask, other = rest or (np.True_, None)
    at = np.asarray(pointers.at, np.int64)
    mask = np.broadcast_to(mask, at.shape)
    inside = at[mask]
    assert ((inside >= 0) & (inside < pointers.memory.size)).all(), op.text
    found = pointers.memory[np.where(mask, at, 0)]
    return [found if other is None else np.where(mask, found, other)]


def _store(op: Op, env: dict[str, Any]) -> list[Any]:
    pointers, value, *rest = _given(op, env)
    at = np.asarray(pointers.at, np.int64)
    mask = np.broadcast_to(rest[0] if rest else True, at.shape)
    assert value.dtype.itemsize == pointers.memory.dtype.itemsize
    inside = at[mask]
    assert ((inside >= 0) & (inside < pointers.memory.size)).all(), op.text
    pointers.memory[inside] = np.broadcast_to(value, at.shape)[mask].view(
        pointers.memory.dtype
    )
    return []


def _dot(op: Op, env: dict[str, Any]) -> list[Any]:
    x, y, z = _given(op, env)
    wide = np.int32 if x.dtype == np.int8 else np.float32
    assert min(*x.shape[-2:], y.shape[-1]) >= 16
    assert x.dtype != np.float32 or "inputPrecision = ieee" in op.text
    return [(x.astype(wide) @ y.astype(wide) + z).astype(wide)]


def _gather(op: Op, env: dict[str, Any]) -> list[Any]:
    x, index = _given(op, env)
    assert ((index >= 0) & (index < len(x))).all()
    return [x[index]]


def _axis(op: Op) -> int:
    found = re.search(r"axis = (\d+)", op.text)
    assert found is not None
    return int(found[1])


def _reduce(op: Op, env: dict[str, Any]) -> list[Any]:
    count = max(1, len(op.results))
    xs = [np.moveaxis(env[v], _axis(op), 0) for v in _uses(op.text)[:count]]
    # In halves, as a tree: the order that the threads of a GPU have.
    while len(xs[0]) > 1:
        half = len(xs[0]) // 2
        pairs = [*(x[:half] for x in xs), *(x[half:] for x in xs)]
        xs = _call(op.regions[0], pairs, env)[1]
    return [x[0] for x in xs]


def _scan(op: Op, env: dict[str, Any]) -> list[Any]:
    (name,) = _uses(op.text)[:1]
    rows = [*np.moveaxis(env[name], _axis(op), 0)]
    rows = rows[::-1] if "reverse = true" in op.text else rows
    found = rows[:1]
    for row in rows[1:]:
        found += _call(op.regions[0], [found[-1], row], env)[1]
    found = found[::-1] if "reverse = true" in op.text else found
    return [np.stack(found, _axis(op))]


def _call(region: Region, values: Sequence[Any], env: dict[str, Any]) -> Any:
    env.update(zip(region.arguments, values, strict=True))
    return _run(region, env)


def _for(op: Op, env: dict[str, Any]) -> list[Any]:
    head, _, carried = op.text.partition("iter_args(")
    i, start, stop, step = _uses(head)
    names = _uses(carried.split(")")[0])
    values = [env[v] for v in names[1::2]]
    for number in range(int(env[start]), int(env[stop]), int(env[step])):
        env.update(zip(names[::2], values, strict=True))
        env[i] = np.int32(number)
        _, values = _run(op.regions[0], env)
    return values


def _while(op: Op, env: dict[str, Any]) -> list[Any]:
    names = _uses(op.text.split(")")[0])
    values = [env[v] for v in names[1::2]]
    while True:
        env.update(zip(names[::2], values, strict=True))
        _, (going, *values) = _run(op.regions[0], env)
        if not going:
            return values
        _, values = _call(op.regions[1], values, env)


def _if(op: Op, env: dict[str, Any]) -> list[Any]:
    return _run(op.regions[0 if env[_uses(op.text)[0]] else 1], env)[1]


def _unsigned(x: Any) -> Any:
    return x if x.dtype.kind in "bu" else x.view(f"u{x.dtype.itemsize}")


def _compare(op: Op, env: dict[str, Any]) -> list[Any]:
    x, y = _given(op, env)
    how = op.text.split()[1].rstrip(",")
    if how == "uno":
        return [np.isnan(x) | np.isnan(y)]
    if op.name == "arith.cmpi" and how[0] == "u":
        x, y = _unsigned(x), _unsigned(y)
    names = {"gt": np.greater, "lt": np.less, "ge": np.greater_equal}
    names |= {"le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
    return [names[how if len(how) == 2 else how[1:]](x, y)]


def _cast(op: Op, env: dict[str, Any]) -> list[Any]:
    (x,) = _given(op, env)
    dtype = _types(op.text)[-1][1]
    if op.name == "tt.bitcast":
        return [x.view(dtype)]
    if op.name in ("arith.extui", "arith.uitofp"):
        x = _unsigned(x)
    if op.name == "arith.fptoui":
        return [x.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)]
    return [x.astype(dtype)]


def _divide(op: Op, env: dict[str, Any]) -> list[Any]:
    x, y = _given(op, env)
    assert np.all(y != 0)
    if op.name.endswith("ui"):
        x, y = _unsigned(x), _unsigned(y)
    rest = np.fmod(x, y)
    found = rest if "rem" in op.name else (x - rest) // y
    return [found.astype(x.dtype).view(_given(op, env)[0].dtype)]


def _elementwise(function: Callable[..., Any], *, unsigned: bool = False) -> Any:
    def rule(op: Op, env: dict[str, Any]) -> list[Any]:
        xs = _given(op, env)
        found = function(*map(_unsigned, xs) if unsigned else xs)
        dtype = xs[-1].dtype
        return [found.view(dtype) if unsigned else np.asarray(found).astype(dtype)]

    return rule


def _by_number(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return np.vectorize(lambda x: function(float(x)), otypes=[np.float64])


LIBRARY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "pow": np.power,
    "erf": _by_number(math.erf),
    "erfc": _by_number(math.erfc),
    "absf": np.abs,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}


def _math(op: Op, env: dict[str, Any]) -> list[Any]:
    """A function of libdevice, or of the dialect `math`."""
    xs = _given(op, env)
    symbol = re.search(r"__nv_(\w+)\"", op.text)
    name = op.name.removeprefix("math.")
    if symbol is not None:
        name = symbol[1][:-1] if xs[0].dtype == np.float32 else symbol[1]
    function = LIBRARY.get(name) or getattr(np, name)
    return [np.asarray(function(*xs)).astype(xs[0].dtype)]


_ARITH: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shrs": np.right_shift,
    "maxs": np.maximum,
    "mins": np.minimum,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "neg": np.negative,
    "div": np.divide,
}
RULES: dict[str, Callable[[Op, dict[str, Any]], list[Any]]] = {
    **{f"arith.{n}{t}": _elementwise(f) for n, f in _ARITH.items() for t in "if"},
    "arith.maxui": _elementwise(np.maximum, unsigned=True),
    "arith.minui": _elementwise(np.minimum, unsigned=True),
    "arith.shrui": _elementwise(np.right_shift, unsigned=True),
    "arith.select": _elementwise(np.where),
    **dict.fromkeys(("arith.cmpf", "arith.cmpi"), _compare),
    **{f"arith.{n}{t}i": _divide for n in ("div", "rem") for t in "su"},
    **{f"arith.{n}": _cast for n in ("extsi", "extui", "trunci", "extf", "truncf")},
    **{f"arith.{n}": _cast for n in ("sitofp", "uitofp", "fptosi", "fptoui")},
    "arith.constant": _constant,
    "gpu.barrier": lambda op, env: [],
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "tt.addptr": _addptr,
    "tt.bitcast": _cast,
    "tt.dot": _dot,
    "tt.gather": _gather,
    "tt.get_program_id": lambda op, env: [env["program"]],
    "tt.load": _load,
    "tt.store": _store,
    "tt.trans": _trans,
    "tt.scan": _scan,
    "tt.make_range": lambda op, env: [np.arange(_types(op.text)[-1][0][0], dtype="i4")],
    "tt.precise_divf": _elementwise(np.divide),
    "tt.reduce": _reduce,
    "tt.precise_sqrt": _elementwise(np.sqrt),
    **dict.fromkeys(("tt.broadcast", "tt.reshape", "tt.splat"), _shaped),
}
