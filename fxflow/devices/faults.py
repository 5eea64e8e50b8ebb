"""Known faults of XLA in the supported jaxlibs, and what keeps programs from them.

Each entry of `FAULTS` is a report that was reproduced: wrong values, a crash, or a
program that is slower than without the option. Most are cured by options of the
compiler, which `compile` sets for every program of the platform; some by how an
operation is lowered, unconditionally, because an exported program may be compiled by
another jaxlib than the one that wrote it. `tests/devices/test_faults.py` shows each
fault without its cure and the right values with it: an entry is deleted when no
supported jaxlib has the fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from fxflow.devices._jaxlib import jaxlib_version

#: What XLA:CPU leaves to YNNPACK. By default: products, convolutions and sums, the
#: first two each by itself.
FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
PRODUCTS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
CONVOLUTIONS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"


class Fault(NamedTuple):
    """A fault of XLA.

    Attributes:
      name: short, unique.
      what: goes wrong, in one sentence.
      reports: public ones.
      platforms: whose programs have it; empty: all.
      since: the first jaxlib with it; empty: all that are supported.
      fixed: the first jaxlib without it; empty: none yet.
      options: of the compiler, which keep programs from it.
      always: whether every program of the platform takes the options; if not, those
        do for which a caller asks `present`.
      lowered: the module that lowers around it, where no option does.
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
        "YNNPACK's fusions with sums give wrong values: from 32,769 columns of float32 "
        "and 16,385 of float64, of a product that is squared and summed, say.",
        ("jax#39103",),
        fixed=(0, 11, 0),
        options={FUSIONS: f"{PRODUCTS},{CONVOLUTIONS}"},
    ),
    Fault(
        "sums of many axes",
        "YNNPACK's fusions with sums of arrays of 7 and 8 axes crash, or never end.",
        ("jax#39257", "jax#40412"),
        fixed=(0, 11, 1),
        options={FUSIONS: f"{PRODUCTS},{CONVOLUTIONS}"},
    ),
    Fault(
        "extrema beside NaN",
        "YNNPACK's maxima and minima of 4,096 or more floats pass over NaN. Options "
        "against wrong sums switch them off, too.",
        (),
        lowered="fxflow/lax/reduction.py",
    ),
    Fault(
        "slow convolutions",
        "YNNPACK's convolutions take up to five times as long as XLA's own where many "
        "numbers are summed.",
        (),
        fixed=(0, 11, 0),
        options={FUSIONS: PRODUCTS},
        always=False,
    ),
    Fault(
        "cropped and padded convolutions",
        "Convolutions of an image that loses elements at one end of an axis and gains "
        "at the other read beyond the image.",
        ("openxla#48713",),
        lowered="fxflow/lax/convolution.py",
    ),
    Fault(
        "squares of integers",
        "Products of signed integers by themselves, and absolute values, are taken to "
        "be positive though they wrap: `b * b < 0` is False, `abs(b * b)` negative.",
        ("openxla#46628", "openxla#41784"),
        platforms=(),
        fixed=(0, 11, 1),
        lowered="fxflow/lax/elementwise.py",
    ),
    Fault(
        "squares that are NaN",
        "`x * x >= 0` is True of NaN, as of all that is not negative otherwise.",
        (),
        platforms=(),
        lowered="fxflow/lax/comparison.py",
    ),
    Fault(
        "sums with constants",
        "Constants of sums and of products that follow each other are joined first: "
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
        "The quotient of an integer 0 by itself is 1 where the compiler sees that both "
        "are one value, and -1 elsewhere.",
        (),
        since=(0, 11, 1),
        lowered="fxflow/lax/elementwise.py",
    ),
    Fault(
        "slices of slices",
        "A slice of a slice becomes one slice whose start is the sum of both, before "
        "the second was clamped.",
        ("openxla#49121",),
        platforms=(),
        lowered="fxflow/lax/dynamic_slicing.py",
    ),
    Fault(
        "shifted updates",
        "A part of an array that is written over another part of it, in an array that "
        "then changes shape, is read after it was overwritten.",
        ("openxla#49176",),
        lowered="fxflow/lax/dynamic_slicing.py",
    ),
    Fault(
        "exponentials of NaN",
        "exp, expm1, sinh, cosh, logistic and erfc of what LLVM sees to be a constant "
        "NaN are arbitrary numbers, or memory that was not written: in a loop over "
        "`exp(where(scalar, x, nan))`, which LLVM splits by the scalar.",
        (),
        lowered="fxflow/lax/families.py",
    ),
)


def version() -> tuple[int, ...]:
    """Returns jaxlib's version: ``(0, 10, 2)``."""
    return tuple(map(int, re.findall(r"\d+", jaxlib_version)[:3]))


def present(name: str, platform: str) -> Fault | None:
    """Returns a fault that this jaxlib has on a platform, or None.

    Args:
      name: of the fault.
      platform: of the program.
    """
    (fault,) = (f for f in FAULTS if f.name == name)
    return fault if _here(fault, platform) else None


def _here(fault: Fault, platform: str) -> bool:
    ours = not fault.platforms or platform in fault.platforms
    found = version()
    return ours and found >= fault.since and not (fault.fixed and found >= fault.fixed)


def options(platform: str) -> dict[str, str]:
    """Returns the options that every program of a platform is compiled with.

    Those that are set in ``XLA_FLAGS`` are left to the user.

    Args:
      platform: of the program.
    """
    found: dict[str, str] = {}
    for fault in FAULTS:
        if fault.always and fault.options and _here(fault, platform):
            found.update(fault.options)
    return chosen(found)


def chosen(found: Mapping[str, str]) -> dict[str, str]:
    """Returns those of some options that ``XLA_FLAGS`` does not set.

    Args:
      found: names and values.
    """
    if not found:
        return {}
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in found.items() if name not in flags}
