"""`jax.experimental.custom_partitioning`: functions that XLA divides by itself.

JAX has XLA call back into Python while it divides a program over devices. fxflow writes
programs that need no Python when they are compiled (or taken from the disk cache), so
the user's rule is kept but not asked: the function is traced like any other, and XLA
divides what it is made of. The numbers are those of the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from fxflow.compat.jax._mirror import listen

BATCHING = "…"
"""Stands for leading axes of any number in an `ArrayMapping`."""


class CompoundFactor(tuple[str, ...]):
    """The factors that one axis is made of.

    Args:
      *factors: their names, at least two.

    Raises:
      ValueError: there are fewer, or one is not a name.
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Checks the names."""
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        _check_factors(factors)
        return tuple.__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factor, or the factors, of each axis of an operand or result.

    Args:
      *dim_mappings: names and `CompoundFactor`s; the first may be `BATCHING`.

    Raises:
      ValueError: one is something else.
    """

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        """Checks the names."""
        rest = dim_mappings[1:] if dim_mappings[:1] == (BATCHING,) else dim_mappings
        _check_factors(m for m in rest if not isinstance(m, CompoundFactor))
        return tuple.__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which axes of operands and results belong together; it is kept, not asked.

    Args:
      operand_mappings: an `ArrayMapping` for each operand.
      result_mappings: an `ArrayMapping` for each result.
      reduction_factors: factors that results are reduced along.
      need_replication_factors: factors that must not be divided.
      permutation_factors: factors along which values move between devices.
      **factor_sizes: the sizes of factors that only compound factors have.

    Raises:
      ValueError: a factor is not known, or its size is missing or not wanted.
    """

    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    reduction_factors: tuple[str, ...]
    need_replication_factors: tuple[str, ...]
    permutation_factors: tuple[str, ...]

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        entries = [
            e for m in (*self.operand_mappings, *self.result_mappings) for e in m
        ]
        whole = {e for e in entries if isinstance(e, str) and e != BATCHING}
        parts = {f for e in entries if isinstance(e, CompoundFactor) for f in e}
        if sized := whole & set(factor_sizes):
            raise ValueError(
                f"Factor {min(sized)} represents a whole dimension; do not specify its "
                "size"
            )
        if missing := parts - whole - set(factor_sizes):
            raise ValueError(
                f"Factor {min(missing)} is only used in compound factors; must specify "
                "its size"
            )
        special = (
            *self.reduction_factors,
            *self.need_replication_factors,
            *self.permutation_factors,
            *factor_sizes,
        )
        if unknown := set(special) - whole - parts:
            raise ValueError(f"Factor {min(unknown)} is not used in the mappings")


def _check_factors(factors: Iterable[Any]) -> None:
    for factor in factors:
        if not isinstance(factor, str) or not factor.isidentifier():
            raise ValueError(f"A factor should be a name, got {factor!r}")


class custom_partitioning:
    """A function with a rule of how it is divided, which is not used here.

    Args:
      fun: the function.
      static_argnums: positions of arguments that are not arrays.
    """

    fun: Callable[..., Any]
    static_argnums: Any
    partition: Callable[..., Any]
    sharding_rule: Any

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **options: Any,
    ) -> Callable[..., Any]:
        """Keeps the rule; returns `partition`."""
        self.partition, self.sharding_rule = partition, sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.fun(*args, **kwargs)


__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
]

listen(globals())
