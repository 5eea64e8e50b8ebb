"""`emit_pipeline`: a loop over blocks within a kernel."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.compat.jax.experimental.pallas._call import (
    Part,
    _is_spec,
    _require_written,
    each_program,
)
from fxflow.core import tree
from fxflow.core.ir.references import Ref, RefView
from fxflow.core.ir.references import new as new_ref
from fxflow.errors import ArgumentError


class BufferType(enum.Enum):
    """What a buffer of a pipeline is for."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 4
    MANUAL = 5


class BufferedRef:
    """A block of a pipeline; nothing is buffered, so it only has the block's spec.

    Args:
      spec: of the block.
      buffer_type: see `BufferType`.
    """

    def __init__(self, spec: Any, buffer_type: BufferType) -> None:
        self.spec: Any = spec
        self.buffer_type: BufferType = buffer_type

    @classmethod
    def input(cls, spec: Any, *args: Any, **options: Any) -> BufferedRef:
        """Returns the block of an operand; other arguments have no effect."""
        return cls(spec, BufferType.INPUT)

    @classmethod
    def output(cls, spec: Any, *args: Any, **options: Any) -> BufferedRef:
        """Returns the block of a result; other arguments have no effect."""
        return cls(spec, BufferType.OUTPUT)

    @classmethod
    def input_output(cls, spec: Any, *args: Any, **options: Any) -> BufferedRef:
        """Returns the block of what is read and written."""
        return cls(spec, BufferType.INPUT_OUTPUT)

    @property
    def is_input(self) -> bool:
        """Whether it is read."""
        return self.buffer_type is not BufferType.OUTPUT

    @property
    def is_output(self) -> bool:
        """Whether it is written."""
        return self.buffer_type is not BufferType.INPUT


#: What JAX calls the base of `BufferedRef`.
BufferedRefBase = BufferedRef


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Sequence[Any],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Returns a loop over blocks of references, in order.

    Args:
      body: `body(*inputs, *results, *scratch)` of references to blocks; inside,
        `program_id` counts the steps of the loop.
      grid: steps along each axis; numbers may be traced.
      in_specs, out_specs: blocks.
      tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes,
        no_pipelining: have no effect.

    Returns:
      A function of the references that are read, those that are written, and
      `scratches=`.

    Raises:
      ArgumentError: from the function: there are more or fewer references than blocks.
    """
    sizes = (grid,) if not isinstance(grid, tuple | list) else tuple(grid)
    sizes = tuple(int(n) if isinstance(n, np.integer) else n for n in sizes)
    one = isinstance(out_specs, list | tuple)
    ins = tuple(in_specs) if isinstance(in_specs, tuple | list) else (in_specs,)
    outs = tuple(out_specs) if one else (out_specs,)

    def pipeline(
        *refs: Any,
        scratches: Sequence[Any] = (),
        allocations: Any = None,
        first_cycle: Any = None,
        last_cycle: Any = None,
        init_accumulators: Any = None,
        prefetch: Any = None,
        postyeet: Any = None,
        schedule: Any = None,
        body_prologue: Callable[[], None] | None = None,
    ) -> None:
        if len(refs) != len(ins) + len(outs):
            raise ArgumentError(
                f"emit_pipeline: {len(refs)} references were given, but there are "
                f"{len(ins)} in_specs and {len(outs)} out_specs"
            )
        if body_prologue is not None:
            body_prologue()
        parts = tree.map(
            lambda spec, ref: Part.of("emit_pipeline", _spec(spec), ref.shape),
            (*ins, *outs),
            tuple(refs),
            is_leaf=lambda x: _is_spec(x) or isinstance(x, BufferedRef),
        )
        is_part = lambda x: isinstance(x, Part)
        for part in tree.leaves(parts[len(ins) :], is_leaf=is_part):
            _require_written(part)

        def program() -> None:
            ids = [kernels.program_id(g) for g in range(len(sizes))]
            seen = tree.map(
                lambda part, ref: part.view(ref, ids, ()),
                parts,
                tuple(refs),
                is_leaf=is_part,
            )
            before = [tuple(ids)] if _explicit_indices else []
            body(*before, *seen, *scratches)

        each_program(sizes, program)

    return pipeline


def _spec(spec: Any) -> Any:
    return spec.spec if isinstance(spec, BufferedRef) else spec


def emit_pipeline_with_allocations(
    body: Callable[..., None], *, grid: Any, in_specs: Any = (), out_specs: Any = ()
) -> tuple[Callable[..., None], Callable[..., Any]]:
    """Returns `emit_pipeline`, and a function that allocates its buffers: none.

    Args:
      body, grid, in_specs, out_specs: see `emit_pipeline`.

    Returns:
      The loop, which ignores `allocations=`, and a function that returns `()`.
    """
    loop = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs)
    return loop, lambda *refs, **options: ()


def run_state(function: Callable[..., None]) -> Callable[[Any], Any]:
    """Makes a function that changes references one that returns their contents.

    Args:
      function: of a pytree of references.

    Returns:
      A function of a pytree of arrays, to the contents after it.
    """

    def run(values: Any) -> Any:
        refs = tree.map(lambda x: new_ref(fnp.array(x)), values)
        function(refs)
        return tree.map(
            lambda r: r[...], refs, is_leaf=lambda x: isinstance(x, Ref | RefView)
        )

    return run
