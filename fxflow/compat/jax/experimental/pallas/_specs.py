"""Blocks of Pallas's kernels, and their grids."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Blocked:
    """An axis in blocks that the index map counts.

    Attributes:
      block_size: the length of one.
    """

    block_size: int


@dataclass(frozen=True)
class Element:
    """An axis of which the index map returns the first element.

    Attributes:
      block_size: the number of them.
      padding: elements before and behind the axis; what they hold is zero.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """An axis of length 1 that the program does not see."""


@dataclass(frozen=True)
class BoundedSlice:
    """An axis of which the index map returns a slice, `ds(start, size)`.

    Attributes:
      block_size: the largest size: the length that the program sees.
    """

    block_size: int


@dataclass(frozen=True)
class Indirect:
    """An axis of which the index map returns the elements: refused."""

    block_size: int


class RevisitMode(enum.Enum):
    """When a block that was left is written back."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """The number of buffers of a pipeline, which has no effect.

    Attributes:
      buffer_count, use_lookahead, revisit: as in JAX.
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect
squeezed: Squeezed = Squeezed()


@dataclass(frozen=True)
class BlockSpec:
    """Which block of an array a program gets.

    Attributes:
      block_shape: a length or `BlockDim` for each axis; None: the whole array, or
        (inside) an axis of length 1 that is not seen.
      index_map: from a program's ids, and references to prefetched scalars, to the
        index of its block; None: the first block.
      pipeline_mode: has no effect.
      memory_space: has no effect.
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Any = None
    memory_space: Any = field(default=None, kw_only=True)

    def replace(self, **changes: Any) -> BlockSpec:
        """Returns the spec with other attributes."""
        return type(self)(**{**vars(self), **changes})


class _NoBlockSpec:
    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec: _NoBlockSpec = _NoBlockSpec()


@dataclass(frozen=True)
class GridSpec:
    """A grid, and the blocks of operands and results.

    Attributes:
      grid: the number of programs along each axis.
      in_specs, out_specs: blocks.
      scratch_shapes: types of scratch.
    """

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()

    @property
    def num_scalar_prefetch(self) -> int:
        """The number of operands that index maps get: none."""
        return 0


@dataclass(frozen=True)
class PrefetchScalarGridSpec:
    """A `GridSpec` of which the first operands go to index maps, too.

    Attributes:
      num_scalar_prefetch: the number of scalars to prefetch.
      grid, in_specs, out_specs, scratch_shapes: see `GridSpec`; `in_specs` is of the
        other operands.
    """

    num_scalar_prefetch: int
    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, which has no effect.

    Attributes:
      flops, transcendentals, bytes_accessed, remote_bytes_transferred: numbers.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class CompilerParams:
    """Options of a compiler, of which `dimension_semantics` alone has an effect.

    Args:
      **options: any of JAX's.
    """

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"CompilerParams({given})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompilerParams) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))
