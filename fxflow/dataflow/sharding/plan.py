"""Plans of shardings: how arguments and results are divided, why, and at what cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import ShapeDtypeStruct
from fxflow.core.boundary import boundary
from fxflow.dataflow.sharding.collectives import (
    KINDS,
    Totals,
    axis_names,
    compiled,
    totals,
)
from fxflow.dataflow.sharding.constraints import constrain
from fxflow.dataflow.sharding.dimensions import NONE
from fxflow.dataflow.sharding.sharded import Sharded
from fxflow.dataflow.tables import table, time_text
from fxflow.devices.memory import bytes_text
from fxflow.devices.meshes import AbstractMesh, Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding
from fxflow.transforms.jit import JitFunction, jit
from fxflow.transforms.stages import Traced


@dataclass(frozen=True)
class PlannedLeaf:
    """How a leaf of the arguments is divided.

    Attributes:
      label: its name, such as `params['up']`.
      aval: its type.
      sharding: that was chosen.
      nbytes: on each device.
      why: in words.
    """

    label: str
    aval: Any
    sharding: NamedSharding
    nbytes: int
    why: str


class ShardingPlan:
    """How a function is divided over a mesh, for arguments of given types.

    `in_shardings` and `out_shardings` are what `fxflow.jit` and `device_put` take, and
    `in_specs` and `out_specs` the same as `PartitionSpec`s: a tuple of the arguments'
    pytrees, and the pytree of the result.

    Attributes:
      name: of the function.
      mesh: the devices.
      in_shardings: of each argument.
      out_shardings: of the result.
      leaves: the arguments' leaves in words.
      seconds: of a call, predicted.
      bound: seconds below which no choice comes by the same model.
      memory: bytes on each device at the peak, predicted.

    Example:
      >>> def f(w, x):
      ...     return fnp.tanh(x @ w)
      >>> mesh = fxflow.make_mesh((4,), ("data",))
      >>> w = fxflow.ShapeDtypeStruct((64, 64), "float32")
      >>> x = fxflow.ShapeDtypeStruct((65536, 64), "float32")
      >>> plan = fxflow.dataflow.auto_sharding(f, mesh)(w, x)
      >>> plan.in_specs
      (PartitionSpec(), PartitionSpec('data'))
    """

    name: str
    seconds: float
    bound: float
    memory: float

    def __init__(
        self, traced: Traced, sharded: Sharded, fun: Callable[..., Any]
    ) -> None:
        self._traced, self._sharded, self._fun = traced, sharded, fun
        self.name = traced.name
        self.mesh: Mesh = sharded.mesh
        count = traced.graph.num_consts
        args, kwargs = traced.in_tree.unflatten(sharded.inputs[count:])
        assert not kwargs
        self.in_shardings: tuple[Any, ...] = args
        self.out_shardings: Any = traced.out_tree.unflatten(sharded.outputs)
        solution = sharded.solution
        self.seconds, self.bound = solution.seconds, solution.bound
        self.memory = solution.memory

    @property
    def in_specs(self) -> tuple[Any, ...]:
        """The `PartitionSpec` of each argument's leaves."""
        specs: tuple[Any, ...] = tree.map(lambda s: s.spec, self.in_shardings)
        return specs

    @property
    def out_specs(self) -> Any:
        """The `PartitionSpec` of the result's leaves."""
        return tree.map(lambda s: s.spec, self.out_shardings)

    @property
    def collectives(self) -> Totals:
        """What the model expects: by kind and mesh axes how often, and bytes in all."""
        return totals(self._sharded.collectives)

    @functools.cached_property
    def leaves(self) -> list[PlannedLeaf]:
        """See the class."""
        count = self._traced.graph.num_consts
        sharded, found = self._sharded, []
        values = sharded.model.dims.program.inputs[count:]
        for label, value in zip(self._traced.labels, values, strict=True):
            row = sharded.model.row(value)
            nbytes = sharded.model.nbytes(row, sharded.solution.masks)
            sharding = sharded.sharding(sharded.masks_of(value))
            why = reason(sharded, value)
            found.append(PlannedLeaf(label, row.aval, sharding, round(nbytes), why))
        return found

    def lines(self) -> list[tuple[PlannedLeaf, int]]:
        """Returns the first of the leaves that are alike, and how many they are.

        These differ in numbers in their names alone, as those of equal layers do.
        """
        groups: dict[Any, list[PlannedLeaf]] = {}
        for leaf in self.leaves:
            key = _without_numbers(leaf.label), leaf.aval, leaf.sharding
            groups.setdefault(key, []).append(leaf)
        return [(leaves[0], len(leaves)) for leaves in groups.values()]

    # -- running -----------------------------------------------------------------------

    @property
    def num_constraints(self) -> int:
        """The number of values inside the function whose sharding is stated, too."""
        return len(self._sharded.constraints)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The function, with the shardings of values inside that the plan states.

        Itself if there are none. Differentiate before planning, not this function.
        """
        constraints = self._sharded.constraints
        if not constraints:
            return self._fun
        traced = self._traced
        graph = constrain(traced.graph, constraints)
        consts, in_tree, out_tree = traced.consts, traced.in_tree, traced.out_tree

        def function(*args: Any) -> Any:
            leaves = tree.flatten_up_to(in_tree, (args, {}))
            return out_tree.unflatten(graph.evaluate(*consts, *leaves))

        function.__name__ = function.__qualname__ = self.name
        return function

    def jit(self, **options: Any) -> JitFunction[..., Any]:
        """Returns the function, compiled with these shardings.

        Args:
          **options: of `fxflow.jit`, such as `donate_argnums`.
        """
        return jit(
            self.function,
            in_shardings=self.in_shardings,
            out_shardings=self.out_shardings,
            **options,
        )

    @boundary
    def check(self) -> ShardingCheck:
        """Compiles the function, and compares its collectives with the model's.

        Nothing is run, so arguments that fit on no device can be checked, too.
        """
        traced = self._traced
        structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in traced.in_avals]
        args, _ = traced.in_tree.unflatten(structs)
        donated, _ = traced.in_tree.unflatten(traced.donated)
        given = [i for i, flags in enumerate(donated) if any(tree.leaves(flags))]
        program = self.jit(donate_argnums=given).lower(*args).compile()
        found = totals(compiled(program.as_text(), self.mesh))
        sizes = program.memory_analysis()
        names = ("argument", "output", "temp")
        memory = sum(sizes[f"{name}_size_in_bytes"] for name in names)
        memory -= sizes["alias_size_in_bytes"]
        return ShardingCheck(self.mesh, self.collectives, found, self.memory, memory)

    # -- text --------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<ShardingPlan of {self.name}: {self.summary()}>"

    def summary(self) -> str:
        """Returns the mesh, the predicted seconds and the memory in a line."""
        axes = " × ".join(f"{name}: {n}" for name, n in self.mesh.shape_tuple)
        return (
            f"{axes}; {time_text(self.seconds)} (at least {time_text(self.bound)}), "
            f"{bytes_text(self.memory)} on each device"
        )

    def to_text(self) -> str:
        """Returns the plan as text: a table of the arguments' leaves.

        Leaves that are alike, such as those of equal layers, share a line.
        """
        rows: list[Sequence[str]] = [("leaf", "type", "spec", "bytes each", "why")]
        for first, alike in self.lines():
            more = f" and {alike - 1} more" if alike > 1 else ""
            spec = spec_text(first.sharding.spec)
            cells = str(first.aval), spec, f"{first.nbytes:,}", first.why
            rows.append((first.label + more, *cells))
        text = [f"{self.name} over {self.summary()}", *table(rows, right=(3,))]
        found = self.collectives
        rows = [("collective", "over", "count", "bytes")]
        for (kind, mask), (count, total) in found.items():
            over = _over(self.mesh, mask)
            rows.append((kind, over, f"{count:,.0f}", f"{total:,.0f}"))
        text += table(rows, right=(2, 3)) if found else ["no collectives"]
        if self.num_constraints:
            text.append(
                f"{self.num_constraints} sharding constraints inside the function"
            )
        return "\n".join(text)


class ShardingCheck:
    """The collectives of a compiled program beside those of the model.

    A sum that is wanted in parts may be compiled as a sum of which each device keeps a
    part, and a sum over two axes in one step or two: what is compared is bytes by kind,
    where all-reduce and reduce-scatter are one kind.

    Attributes:
      predicted: by kind and mesh axes how often, and bytes in all.
      compiled: likewise.
      memory: bytes on each device, predicted.
      compiled_memory: arguments, results and temporaries of the program.
    """

    predicted: Totals
    compiled: Totals
    memory: float
    compiled_memory: int

    def __init__(
        self,
        mesh: AbstractMesh,
        predicted: Totals,
        compiled: Totals,
        memory: float,
        compiled_memory: int,
    ) -> None:
        self.predicted, self.compiled = predicted, compiled
        self.memory, self.compiled_memory = memory, compiled_memory
        self._mesh = mesh

    @property
    def error(self) -> float:
        """The bytes by which model and program differ, as a fraction of the larger."""
        mine, theirs = (_by_kind(t) for t in (self.predicted, self.compiled))
        apart = sum(abs(mine.get(k, 0) - theirs.get(k, 0)) for k in {*mine, *theirs})
        total = max(sum(mine.values()), sum(theirs.values()))
        return apart / total if total else 0.0

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<ShardingCheck: {self.error:.1%} of the bytes differ>"

    def to_text(self) -> str:
        """Returns both as a table."""
        rows: list[Sequence[str]] = [
            ("collective", "over", "predicted", "bytes", "compiled", "bytes")
        ]
        order = {kind: i for i, kind in enumerate(KINDS)}
        keys = {*self.predicted, *self.compiled}
        for kind, mask in sorted(keys, key=lambda k: (order[k[0]], k[1])):
            cells = []
            for found in (self.predicted, self.compiled):
                count, nbytes = found.get((kind, mask), (0, 0))
                cells += [f"{count:,.0f}", f"{nbytes:,.0f}"]
            rows.append((kind, _over(self._mesh, mask), *cells))
        text = table(rows, right=(2, 3, 4, 5)) if keys else ["no collectives"]
        text.append(f"{self.error:.1%} of the bytes differ")
        text.append(
            f"memory: {bytes_text(self.memory)} predicted, "
            f"{bytes_text(self.compiled_memory)} compiled"
        )
        return "\n".join(text)


def _by_kind(found: Totals) -> dict[str, float]:
    result: dict[str, float] = {}
    for (kind, _), (_, nbytes) in found.items():
        kind = "sum" if kind in ("all-reduce", "reduce-scatter") else kind
        result[kind] = result.get(kind, 0.0) + nbytes
    return result


# -- reasons ---------------------------------------------------------------------------


def reason(sharded: Sharded, value: int) -> str:
    """Returns in words why a value is divided as it is.

    Args:
      sharded: a graph with its choices.
      value: of its program, an input.
    """
    model, masks = sharded.model, dict(sharded.solution.masks)
    row = model.row(value)
    now = model.cost(masks)
    found = []
    divided = [a for a in dict.fromkeys(row.axes) if a != NONE and masks[a]]
    for decision in divided:
        axis = row.axes.index(decision)
        extra = model.cost({**masks, decision: 0}) - now
        if len(model.choices[decision]) == 1:
            found.append(f"axis {axis}: as given")
        elif math.isfinite(extra):
            found.append(f"axis {axis}: saves {time_text(extra)}")
        else:
            found.append(f"axis {axis}: with others")
    if row.store != NONE and masks[row.store]:
        saved = model.nbytes(row, {**masks, row.store: 0}) - model.nbytes(row, masks)
        extra = model.cost({**masks, row.store: 0}) - now
        gain = bytes_text(saved) if extra <= 0 else time_text(extra)
        found.append(f"stored in parts: saves {gain}")
    if found:
        return "; ".join(found)
    options = [
        (model.cost({**masks, a: mask}) - now)
        for a in dict.fromkeys(row.axes)
        if a != NONE
        for mask in model.choices[a]
        if mask
    ]
    if not row.axes:
        return "one number"
    if not options:
        return "no mesh axis divides its axes"
    least = min(options)
    if not math.isfinite(least):
        return "whole: would conflict"
    return f"whole: dividing it costs {time_text(max(least, 0.0))}"


def spec_text(spec: PartitionSpec) -> str:
    """Returns a spec as users write it: `P(None, 'model')`."""
    return repr(spec).replace("PartitionSpec", "P", 1)


def _over(mesh: AbstractMesh, mask: int) -> str:
    return " ".join(map(str, axis_names(mesh, mask)))


def _without_numbers(label: str) -> str:
    return "".join("#" if c.isdigit() else c for c in label)
