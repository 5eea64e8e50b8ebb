"""How exactly products are computed: precision, algorithm, dtype of the result."""

from __future__ import annotations

import enum
from dataclasses import dataclass
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


@dataclass(frozen=True)
class DotAlgorithm:
    """Which types the hardware multiplies and accumulates in, as `precision=`.

    `DotAlgorithmPreset` has those that some platform knows; a device that does not know
    an algorithm refuses to compile it.

    Attributes:
      lhs_precision_type: dtype that the left operand is rounded to.
      rhs_precision_type: of the right one.
      accumulation_type: dtype of the sums.
      lhs_component_count: parts that the left operand is split into.
      rhs_component_count: likewise.
      num_primitive_operations: products of parts.
      allow_imprecise_accumulation: whether sums may keep fewer bits now and then.

    Example:
      >>> lax.dot(np.eye(2), np.eye(2), precision=DotAlgorithm("f4", "f4", "f4")).shape
      (2, 2)
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def __post_init__(self) -> None:
        """Makes dtypes of what stands for them."""
        for field in ("lhs_precision_type", "rhs_precision_type", "accumulation_type"):
            object.__setattr__(self, field, dtypes.dtype(getattr(self, field)))


class DotAlgorithmPreset(enum.Enum):
    """Which types the hardware multiplies and accumulates in.

    The value has the operands' type, that of the accumulator, the numbers of primitive
    products and of components, and whether sums may be imprecise. Names say operands
    and accumulator; `ANY_F8` is the operands' own dtype of 8 bits. A device that does
    not know an algorithm refuses to compile it.
    """

    DEFAULT = None
    ANY_F8_ANY_F8_F32 = (None, "f32", 1, 1, False)
    ANY_F8_ANY_F8_F32_FAST_ACCUM = (None, "f32", 1, 1, True)
    ANY_F8_ANY_F8_ANY = ANY_F8_ANY_F8_F32
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = ANY_F8_ANY_F8_F32_FAST_ACCUM
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


PrecisionPair = tuple[Precision, Precision] | DotAlgorithmPreset | DotAlgorithm | None


def canonical_precision(name: str, precision: Any) -> PrecisionPair:
    """Returns the precision of each operand, or None for the compiler's choice.

    Args:
      name: of the operation, for messages.
      precision: None, a `Precision` or its name, a pair of them, or a
        `DotAlgorithmPreset` or its name, or a `DotAlgorithm`.

    Raises:
      ArgumentError: it is not one of these.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithmPreset):
        return None if precision is DotAlgorithmPreset.DEFAULT else precision
    if isinstance(precision, DotAlgorithm):
        return precision
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


def precision_text(precision: PrecisionPair, lhs: Aval, rhs: Aval) -> str:
    """Returns the precision as StableHLO's attribute of a product, with its comma.

    Args:
      precision: as `canonical_precision` returns it.
      lhs: type of the left operand.
      rhs: of the right one.

    Raises:
      DtypeError: the algorithm is for operands of 8 bits, which they are not.
    """
    if precision is None:
        return ""
    if isinstance(precision, tuple):
        return f", precision = [{precision[0]}, {precision[1]}]"
    if isinstance(precision, DotAlgorithm):
        given = precision.lhs_precision_type, precision.rhs_precision_type
        left, right = map(dtypes.mlir_name, given)
        accumulator = dtypes.mlir_name(precision.accumulation_type)
        products = precision.num_primitive_operations
        parts = precision.lhs_component_count, precision.rhs_component_count
        imprecise = precision.allow_imprecise_accumulation
    else:
        operand, accumulator, products, components, imprecise = precision.value
        left = right = operand
        parts = components, components
        if operand is None:
            if max(dtypes.bits(a.dtype) for a in (lhs, rhs)) != 8:
                raise DtypeError(
                    f"dot_general: {precision} is for floats of 8 bits, got {lhs} and "
                    f"{rhs}"
                )
            left, right = (dtypes.mlir_name(a.dtype) for a in (lhs, rhs))
    return (
        f", algorithm = <lhs_precision_type = {left}, rhs_precision_type = {right}, "
        f"accumulation_type = {accumulator}, lhs_component_count = {parts[0]}, "
        f"rhs_component_count = {parts[1]}, num_primitive_operations = {products}, "
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
