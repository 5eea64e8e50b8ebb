"""How exactly products are computed: precision, algorithm, dtype of the result."""

from __future__ import annotations

import enum
from typing import Any

from fxflow._config import config
from fxflow.core.arrays import Aval, dtypes
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.families import kind

# Kinds of dtype that hold products of each kind.
_HOLDS = {"b": "biufc", "i": "ifc", "u": "iufc", "f": "fc", "c": "c"}


class Precision(enum.Enum):
    """How exactly accelerators multiply 32-bit floats; the CPU is always exact.

    Attributes:
      DEFAULT: as fast as possible (bfloat16 on TPU, TF32 on GPU).
      HIGH: in between (three bfloat16 passes on TPU, TF32 on GPU).
      HIGHEST: as exact as 32-bit floats are.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __str__(self) -> str:
        return self.name


_PRECISIONS = {
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


class DotAlgorithmPreset(enum.Enum):
    """Which types the hardware multiplies and accumulates in.

    The value is `(operand type, accumulator type, primitive products, components,
    imprecise accumulation)`; names say operands and accumulator. A device that does not
    know an algorithm refuses to compile it.
    """

    DEFAULT = None
    F16_F16_F16 = ("f16", "f16", 1, 1, False)
    F16_F16_F32 = ("f16", "f32", 1, 1, False)
    BF16_BF16_BF16 = ("bf16", "bf16", 1, 1, False)
    BF16_BF16_F32 = ("bf16", "f32", 1, 1, False)
    BF16_BF16_F32_X3 = ("bf16", "f32", 3, 1, False)
    BF16_BF16_F32_X6 = ("bf16", "f32", 6, 1, False)
    BF16_BF16_F32_X9 = ("bf16", "f32", 9, 1, False)
    TF32_TF32_F32 = ("tf32", "f32", 1, 1, False)
    TF32_TF32_F32_X3 = ("tf32", "f32", 3, 1, False)
    F32_F32_F32 = ("f32", "f32", 1, 1, False)
    F64_F64_F64 = ("f64", "f64", 1, 1, False)

    def __str__(self) -> str:
        return self.name


PrecisionPair = tuple[Precision, Precision] | DotAlgorithmPreset | None


def canonical_precision(name: str, precision: Any) -> PrecisionPair:
    """Returns the precision of each operand, or None for the compiler's choice.

    Args:
      name: of the operation, for messages.
      precision: None, a `Precision` or its name, a pair of them, or a
        `DotAlgorithmPreset` or its name.

    Raises:
      ArgumentError: it is none of these.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithmPreset):
        return None if precision is DotAlgorithmPreset.DEFAULT else precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return canonical_precision(name, DotAlgorithmPreset[precision])
    if isinstance(precision, tuple | list):
        if len(precision) == 2:
            left, right = (_one_precision(name, p) for p in precision)
            return left, right
    else:
        one = _one_precision(name, precision)
        return one, one
    raise ArgumentError(
        f"{name}: precision is one for both operands or a pair, got {precision!r}"
    )


def _one_precision(name: str, precision: Any) -> Precision:
    if precision is None:
        return Precision.DEFAULT
    if isinstance(precision, Precision):
        return precision
    if isinstance(precision, str) and precision.lower() in _PRECISIONS:
        return _PRECISIONS[precision.lower()]
    raise ArgumentError(
        f"{name}: unknown precision {precision!r}: use one of lax.Precision.DEFAULT, "
        f"HIGH and HIGHEST, or {', '.join(map(repr, _PRECISIONS))}"
    )


def precision_text(precision: PrecisionPair) -> str:
    """Returns the precision as StableHLO's attribute of a product, with its comma."""
    if precision is None:
        return ""
    if isinstance(precision, tuple):
        return f", precision = [{precision[0]}, {precision[1]}]"
    operand, accumulator, products, components, imprecise = precision.value
    return (
        f", algorithm = <lhs_precision_type = {operand}, "
        f"rhs_precision_type = {operand}, accumulation_type = {accumulator}, "
        f"lhs_component_count = {components}, rhs_component_count = {components}, "
        f"num_primitive_operations = {products}, "
        f"allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )


def product_dtype(name: str, lhs: Aval, rhs: Aval, preferred: Any) -> Any:
    """Returns the dtype of a product.

    Args:
      name: of the operation, for messages.
      lhs: type of the left operand.
      rhs: type of the right operand.
      preferred: the dtype asked for, or None.

    Raises:
      DtypeError: the operands' dtypes differ or do not go with the one asked for.
    """
    left, right = kind(lhs.dtype), kind(rhs.dtype)
    both_small = left == right == "f" and dtypes.bits(lhs.dtype) <= 8
    if "k" in (left, right):
        raise DtypeError(f"{name}: keys have no product, got {lhs} and {rhs}")
    if lhs.dtype != rhs.dtype and not (both_small and dtypes.bits(rhs.dtype) <= 8):
        raise DtypeError(
            f"{name}: operands must have one dtype, got {lhs} and {rhs}: convert one "
            "with .astype(...), or use the function of fxflow.numpy, which promotes"
        )
    if preferred is None:
        return lhs.dtype
    if kind(preferred) not in _HOLDS[left]:
        raise DtypeError(
            f"{name}: preferred_element_type {dtypes.short_name(preferred)} does not "
            f"hold products of {lhs} and {rhs}: use a dtype of the same kind"
        )
    return preferred
