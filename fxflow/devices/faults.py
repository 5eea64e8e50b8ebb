"""Known faults of XLA in the supported jaxlibs, and their workarounds.

Each entry of `FAULTS` is a reproduced fault: wrong values, a crash, or a program that
is slower than with the workaround. The workaround is either a set of compiler options,
which `compile` sets for every program of the platform, or the way an operation is
lowered; the latter is unconditional, because another jaxlib may compile an exported
program. `tests/devices/test_faults.py` shows each fault without its workaround and the
right values with it. Delete an entry when no supported jaxlib has the fault.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from fxflow.devices._jaxlib import jaxlib_version

#: The operations that XLA:CPU runs with YNNPACK. By default: products and convolutions,
#: each alone, and sums.
FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
PRODUCTS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
CONVOLUTIONS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"


class Fault(NamedTuple):
    """A fault of XLA.

    Attributes:
      name: a short, unique name.
      what: the fault, in one sentence.
      reports: public reports.
      platforms: the platforms with the fault; empty: all.
      since: the first jaxlib with it; empty: all supported versions.
      fixed: the first jaxlib without it; empty: none yet.
      options: compiler options that avoid it.
      always: whether every program of the platform gets the options; otherwise the
        caller adds them if `present` returns the fault.
      lowered: the module whose lowering avoids it, if no option does.
    """

    name: str
    what: str
    reports: tuple[str, ...]
    platforms: tuple[str, ...] = ("cpu",)
    since: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()
    options: Mapping[str, str] = {}
    always: bool = True
    lowered: str = ""


FAULTS = (
    Fault(
        "sums",
        "YNNPACK's fusions with sums give wrong values, for example for a product that "
        "is squared and summed, with at least 32,769 columns of float32 or 16,385 of "
        "float64.",
        ("jax#39103",),
        fixed=(0, 11, 0),
        options={FUSIONS: f"{PRODUCTS},{CONVOLUTIONS}"},
    ),
    Fault(
        "sums of many axes",
        "YNNPACK's fusions with sums of arrays of 7 and 8 axes crash or never finish.",
        ("jax#39257", "jax#40412"),
        fixed=(0, 11, 1),
        options={FUSIONS: f"{PRODUCTS},{CONVOLUTIONS}"},
    ),
    Fault(
        "extrema beside NaN",
        "YNNPACK's maxima and minima of 4,096 or more floats ignore NaN. The options "
        "against wrong sums turn them off, too.",
        (),
        lowered="fxflow/lax/reduction.py",
    ),
    Fault(
        "slow convolutions",
        "YNNPACK's convolutions with long sums take up to five times as long as XLA's "
        "own.",
        (),
        fixed=(0, 11, 0),
        options={FUSIONS: PRODUCTS},
        always=False,
    ),
    Fault(
        "cropped and padded convolutions",
        "Convolutions of an image that is cropped at one end of an axis and padded at "
        "the other read beyond the image.",
        ("openxla#48713",),
        lowered="fxflow/lax/convolution.py",
    ),
    Fault(
        "squares of integers",
        "XLA assumes that squares and absolute values of signed integers are positive, "
        "though they may wrap: `b * b < 0` is False, `abs(b * b)` negative.",
        ("openxla#46628", "openxla#41784"),
        platforms=(),
        fixed=(0, 11, 1),
        lowered="fxflow/lax/elementwise.py",
    ),
    Fault(
        "squares that are NaN",
        "`x * x >= 0` is True for NaN, and so is `y >= 0` for other expressions y that "
        "XLA considers nonnegative.",
        (),
        platforms=(),
        lowered="fxflow/lax/comparison.py",
    ),
    Fault(
        "sums with constants",
        "XLA combines the constants of successive sums, and of successive products: "
        "`x + 1e30 - 1e30` is x, `0 * 1e30 * 1e30` NaN.",
        (),
        lowered="fxflow/lax/elementwise.py",
    ),
    Fault(
        "inverses",
        "`log(exp(x))` is x where exp(x) is infinite, `log(x**0.5)` half the logarithm "
        "of |x|; in jaxlib 0.10 `sqrt(x * x)` is |x| too, and `exp(x) / exp(x)` 1.",
        ("openxla#42732", "jax#37919"),
        lowered="fxflow/core/runtime/lowering.py",
    ),
    Fault(
        "zero by itself",
        "The quotient of an integer 0 by itself is 1 if the compiler knows that both "
        "are the same value, otherwise -1.",
        (),
        since=(0, 11, 1),
        lowered="fxflow/lax/elementwise.py",
    ),
    Fault(
        "slices of slices",
        "A slice of a slice becomes one slice whose start is the sum of both starts, "
        "without clamping the second.",
        ("openxla#49121",),
        platforms=(),
        lowered="fxflow/lax/dynamic_slicing.py",
    ),
    Fault(
        "shifted updates",
        "A part of an array that is written to another part of the same array, which "
        "is then reshaped, is read after it was overwritten.",
        ("openxla#49176",),
        lowered="fxflow/lax/dynamic_slicing.py",
    ),
    Fault(
        "exponentials of NaN",
        "exp, expm1, sinh, cosh, logistic and erfc of a value that LLVM knows is NaN "
        "are arbitrary numbers or uninitialized memory: in a loop over "
        "`exp(where(scalar, x, nan))`, which LLVM splits by the scalar.",
        (),
        lowered="fxflow/lax/families.py",
    ),
)


def version() -> tuple[int, ...]:
    """Returns jaxlib's version: ``(0, 10, 2)``."""
    return _numbers(jaxlib_version)


@functools.cache
def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def present(name: str, platform: str) -> Fault | None:
    """Returns a fault that this jaxlib has on a platform, or None.

    Args:
      name: the fault's name.
      platform: the program's platform.
    """
    (fault,) = (f for f in FAULTS if f.name == name)
    return fault if _applies(fault, platform) else None


def _applies(fault: Fault, platform: str) -> bool:
    ours = not fault.platforms or platform in fault.platforms
    found = version()
    return ours and found >= fault.since and not (fault.fixed and found >= fault.fixed)


def options(platform: str) -> dict[str, str]:
    """Returns the options for every program of a platform.

    Leaves out options that the user sets in ``XLA_FLAGS``.

    Args:
      platform: the program's platform.
    """
    found: dict[str, str] = {}
    for fault in FAULTS:
        if fault.always and fault.options and _applies(fault, platform):
            found.update(fault.options)
    return chosen(found)


def chosen(found: Mapping[str, str]) -> dict[str, str]:
    """Returns the options in `found` that ``XLA_FLAGS`` does not set.

    Args:
      found: values by name.
    """
    if not found:
        return {}
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in found.items() if name not in flags}
