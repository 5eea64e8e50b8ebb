"""Special functions and their derivatives over the exponent ranges of their dtypes.

Against mpmath's numbers (`special_references.py`): no special function may be wrong
without a word anywhere a float of 32 or 64 bits can be. A result may be as far off as
some units of the last place of it, and of what it moves if its arguments do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.scipy import special
from tests.sweeps.sampling import sample
from tests.sweeps.special_references import FILE

DATA = np.load(FILE)

#: Functions that are named otherwise there, or have several results.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "si": lambda x: special.sici(x)[0],
    "ci": lambda x: special.sici(x)[1],
    "fresnel_s": lambda x: special.fresnel(x)[0],
    "fresnel_c": lambda x: special.fresnel(x)[1],
    "jv0": lambda x: special.bessel_jn(x, v=0)[0],
    "jv3": lambda x: special.bessel_jn(x, v=3)[3],
    "multigammaln": lambda x: special.multigammaln(x, 3),
    "zeta_of_two": special.zeta,
    "random_gamma_grad": lax.random_gamma_grad,
}
NAMES = [name for name in DATA if not name.endswith(" slopes")]

_QUOTIENTS = "XLA merges two quotients, whose common divisor underflows below 1e-154"
#: What is known to be less exact, and why: a function, or a derivative of one.
KNOWN = {
    "beta": "an exponential of a difference of logarithms",
    "beta, derivative 0": "a product with that, which may underflow in between",
    "beta, derivative 1": "a product with that, which may underflow in between",
    "betaln": "small differences of logarithms of large numbers",
    "betaln, derivative 0": _QUOTIENTS,
    "betaln, derivative 1": _QUOTIENTS,
    "owens_t": "in the tails only as exact as the larger of two parts that cancel",
}
#: How many units of the last place a result, and what it moves, may be apart.
UNITS, MOVES = 40, 16


def differing(name: str, dtype: Any, run: Callable[..., Any]) -> list[str]:
    """Returns lines on the results that are wrong.

    Args:
      name: of a case.
      dtype: in which it is computed.
      run: what computes the values, from the function: `jit`, or nothing.
    """
    rows, slopes = DATA[name], DATA[f"{name} slopes"]
    count = rows.shape[1] - 2 * (1 + len(slopes))
    info = np.finfo(dtype)
    args = rows[:, :count]
    with np.errstate(over="ignore", under="ignore"):
        same = (args.astype(dtype) == args) & (abs(args) >= info.tiny) | (args == 0)
    rows = rows[same.all(1)]
    args = [rows[:, i].astype(dtype) for i in range(count)]
    function = FUNCTIONS.get(name) or getattr(special, name)
    total = lambda *args: fnp.sum(function(*args))
    every = [function, *(fxflow.grad(total, int(i)) for i in slopes)]
    out = []
    for k, each in enumerate(every):
        got = np.asarray(run(each)(*args)).astype(float)
        want, move = rows[:, count + 2 * k], rows[:, count + 2 * k + 1]
        with np.errstate(all="ignore"):
            bound = info.eps * (UNITS * abs(want) + MOVES * move) + 4 * info.tiny
            near = abs(got - want) <= bound
            # Beyond the range.
            near |= np.isinf(got) & (got * want > 0) & (abs(want) + bound > info.max)
            off = abs(got - want) / bound
        what = f"{name}, derivative {slopes[k - 1]}" if k else name
        if what in KNOWN:
            # The size at least is right where all operands are of ordinary size.
            usual = ((abs(rows[:, :count]) > 0.1) & (abs(rows[:, :count]) < 8)).all(1)
            with np.errstate(invalid="ignore"):
                near |= ~usual | (abs(got - want) <= 1e-3 * abs(want) + 1e-6)
        out += [
            f"{what} of {[r.item() for r in rows[i, :count]]}: {got[i]:.17g}, "
            f"not {want[i]:.17g} ({off[i]:.2g} times the bound)"
            for i in np.flatnonzero(~near)
        ]
    return out


CASES = [(name, dtype) for name in NAMES for dtype in ("float32", "float64")]


@pytest.mark.parametrize(("name", "dtype"), sample(CASES, 60, "special_functions"))
@pytest.mark.parametrize("run", [fxflow.jit, lambda f: f], ids=["jit", "eager"])
def test_value_and_derivatives(name: str, dtype: str, run: Any) -> None:
    with fxflow.config.override(x64=True):
        wrong = differing(name, np.dtype(dtype), run)
    assert not wrong, "\n".join([f"{len(wrong)} are wrong:", *wrong[:8]])
