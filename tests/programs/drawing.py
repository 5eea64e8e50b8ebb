"""Draws programs by a seed, as plain data: to be printed, sent and shrunk."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tests.programs import of_arrays, of_passes, of_programs  # noqa: F401 (fill the table)
from tests.programs.operations import OPERATIONS, Api, Type

DTYPES = (
    "float64", "float64", "float64", "float32", "int32", "int64", "uint8", "int8",
    "uint32", "bool", "complex128",
)  # fmt: skip
FAMILIES = sorted({operation.family for operation in OPERATIONS.values()})
VALUES = ("ordinary", "ordinary", "ordinary", "ties", "special")
SHAPES = ((4,), (8,), (4, 4), (2, 8), (8, 4), (3, 5), (1, 4), (2, 3, 4), (), (5,))


@dataclass(frozen=True)
class Input:
    """An argument of a program: its values are drawn anew from its seed."""

    shape: tuple[int, ...]
    dtype: str
    values: str
    seed: int

    def array(self) -> Any:
        """Returns the argument as a NumPy array."""
        rng = np.random.default_rng(self.seed)
        dtype = np.dtype(self.dtype)
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, self.shape), bool)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -4
            if self.values == "special":
                limits = np.iinfo(dtype)
                edges = [limits.min, limits.max, 0, 1, limits.max - 1]
                return np.asarray(rng.choice(np.array(edges, dtype), self.shape))
            return np.asarray(rng.integers(low, 5, self.shape), dtype)
        if self.values == "ties":
            drawn = rng.integers(-2, 3, self.shape).astype(float)
        elif self.values == "odd":
            # A few of those that only graphs run by NumPy agree on: XLA flushes some.
            odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e-40, 1.0, 2.0]
            drawn = rng.choice([*rng.choice(odd, 3), 1.0, -0.5], self.shape)
        elif self.values == "special":
            choices = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e30, 0.5]
            drawn = rng.choice(choices, self.shape)
        else:
            drawn = rng.normal(size=self.shape)
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.normal(size=self.shape)
        return np.asarray(drawn, dtype)


@dataclass(frozen=True)
class Step:
    """One operation: its name, which values it takes, and its parameters."""

    name: str
    operands: tuple[int, ...]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Program:
    """Inputs, then steps; values are numbered in that order. All unused are results."""

    seed: int
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]

    @functools.cached_property
    def results(self) -> tuple[int, ...]:
        """The steps whose values no other step takes."""
        used = {i for step in self.steps for i in step.operands}
        first = len(self.inputs)
        last = first + len(self.steps)
        return tuple(i for i in range(first, last) if i not in used)

    def __call__(
        self,
        api: Api,
        *arguments: Any,
        scope: Callable[[int], Any] = contextlib.nullcontext,
    ) -> list[Any]:
        """Runs the program with a library on arguments in place of its inputs.

        Args:
          api: the library.
          *arguments: one for each input.
          scope: returns the context of a step, by its number.
        """
        values = [api.np.asarray(a) for a in arguments]
        for number, step in enumerate(self.steps):
            operands = (values[i] for i in step.operands)
            operation = OPERATIONS[step.name]
            with scope(number):
                values.append(operation.apply(api, *operands, **step.parameters))
        return [values[i] for i in self.results]

    def arguments(self) -> list[Any]:
        """Returns NumPy arrays for the inputs."""
        return [one.array() for one in self.inputs]

    def data(self) -> dict[str, Any]:
        """Returns the program as lists, dictionaries, numbers and strings."""
        return asdict(self)

    @staticmethod
    def of(data: dict[str, Any]) -> Program:
        """Returns the program that `data` came from."""
        inputs = [Input(**{**i, "shape": tuple(i["shape"])}) for i in data["inputs"]]
        steps = [Step(**{**s, "operands": tuple(s["operands"])}) for s in data["steps"]]
        return Program(data["seed"], tuple(inputs), tuple(steps))

    def without(self, place: int) -> Program | None:
        """Returns the program without a step whose value is a result, or None."""
        number = len(self.inputs) + place
        if number not in self.results or len(self.steps) == 1:
            return None
        steps = []
        for step in self.steps[:place] + self.steps[place + 1 :]:
            operands = tuple(i - (i > number) for i in step.operands)
            steps.append(replace(step, operands=operands))
        return replace(self, steps=tuple(steps))

    def __str__(self) -> str:
        lines = [f"# program {self.seed}"]
        for i, one in enumerate(self.inputs):
            lines.append(f"v{i} = {one.array()!r}")
        for i, step in enumerate(self.steps, len(self.inputs)):
            operands = [f"v{o}" for o in step.operands]
            rest = [f"{k}={v!r}" for k, v in step.parameters.items()]
            lines.append(f"v{i} = {step.name}({', '.join(operands + rest)})")
        lines.append("return " + ", ".join(f"v{i}" for i in self.results))
        return "\n".join(lines)


def _type(value: Any) -> Type:
    return Type(tuple(value.shape), np.dtype(value.dtype))


class Refused(Exception):
    """An operation refused operands that it is meant for."""


def draw(api: Api, seed: int, length: int = 7) -> Program:
    """Draws a program of up to `length` steps.

    Raises:
      Refused: an operation does not take what its table says it takes.
    """
    rng = np.random.default_rng(seed)
    inputs = tuple(
        Input(
            SHAPES[int(rng.integers(len(SHAPES)))],
            DTYPES[int(rng.integers(len(DTYPES)))] if i else "float64",
            VALUES[int(rng.integers(len(VALUES)))],
            int(rng.integers(2**31)),
        )
        for i in range(int(rng.integers(1, 4)))
    )
    types = [Type(one.shape, np.dtype(one.dtype)) for one in inputs]
    program = Program(seed, inputs, ())
    for _ in range(int(rng.integers(2, length + 1))):
        step = _draw_step(rng, types)
        if step is None:
            continue
        operation = OPERATIONS[step.name]
        structs = [
            api.root.ShapeDtypeStruct(types[i].shape, types[i].dtype)
            for i in step.operands
        ]

        def run(*operands: Any, step: Step = step, apply: Any = operation.apply) -> Any:
            return apply(api, *operands, **step.parameters)

        try:
            result = _type(api.eval_shape(run, *structs))
        except Exception as error:
            given = ", ".join(str(types[i]) for i in step.operands)
            raise Refused(
                f"{step.name}({given}, {step.parameters}): {error!r}"
            ) from error
        if result.size > 4096 or result.ndim > 4:
            continue
        types.append(result)
        program = replace(program, steps=(*program.steps, step))
    return program


def _draw_step(rng: np.random.Generator, types: list[Type]) -> Step | None:
    for _ in range(60):
        family = FAMILIES[int(rng.integers(len(FAMILIES)))]
        names = sorted(n for n, o in OPERATIONS.items() if o.family == family)
        name = names[int(rng.integers(len(names)))]
        operation = OPERATIONS[name]
        # Recent values are taken more often, so that programs are deep.
        weights = np.arange(1, len(types) + 1, dtype=float)
        drawn = rng.choice(len(types), operation.arity, p=weights / weights.sum())
        operands = tuple(int(i) for i in drawn)
        given = [types[i] for i in operands]
        if operation.takes(*given):
            return Step(name, operands, operation.parameters(rng, *given))
    return None
