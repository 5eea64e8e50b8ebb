"""The calls that have derivatives, and the operands by which they have none."""

from __future__ import annotations

from tests.sweeps.catalogue import Call, catalogue

#: What cannot be compared with differences, and why.
EXEMPT = {
    "lax.stop_gradient": "its derivative is not that of its value",
    "lax.igamma_grad_a": "is a derivative that has no further one (an error says so)",
    "lax.random_gamma_grad": "is a derivative that has no further one",
    "lax.scatter_apply": "has no derivative (an error says so)",
    "lax.linalg.householder_product": "has no derivative (an error says so)",
    "numpy.nextafter": "steps between floats are taken for constant, and so is it",
    "lax.nextafter": "steps between floats are taken for constant, and so is it",
}
#: Operands by which there is no derivative, or no second one: errors say so.
FIXED = {
    "lax.igamma": (0,),
    "lax.igammac": (0,),
    "lax.betainc": (0, 1),
    "lax.polygamma": (0,),
    "lax.zeta": (0,),
    "scipy.special.gammainc": (0,),
    "scipy.special.gammaincc": (0,),
    "scipy.special.gammaincinv": (0,),
    "scipy.special.gammainccinv": (0,),
    "scipy.special.chdtr": (0,),
    "scipy.special.chdtrc": (0,),
    "scipy.special.chdtri": (0,),
    "scipy.special.polygamma": (0,),
    "scipy.special.zeta": (0,),
    # The second derivatives of the incomplete beta function by its parameters compile
    # for a minute: tests/scipy/special/test_incomplete_beta.py has first ones.
    **{
        f"scipy.stats.{distribution}.{name}": (1, 2)
        for distribution in ("beta", "t", "f")
        for name in ("cdf", "logcdf", "sf", "logsf", "ppf", "isf")
    },
    "scipy.stats.gennorm.cdf": (1,),
    **{
        f"scipy.stats.{distribution}.{name}": (1,)
        for distribution in ("gamma", "chi2")
        for name in ("cdf", "logcdf", "sf", "logsf")
    },
}


def differentiable_calls() -> list[Call]:
    return [
        c
        for c in catalogue()
        if c.differentiable
        and c.traceable
        and not c.random
        and str(c) not in EXEMPT
        and c.name not in EXEMPT
        and any("f" in o.kinds or "c" in o.kinds for o in c.operands)
    ]
