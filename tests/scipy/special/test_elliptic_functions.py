"""Jacobi's elliptic functions against mpmath."""

import mpmath
import numpy as np
import scipy.special

import fxflow
from fxflow import numpy as fnp
from fxflow.scipy import special

RNG = np.random.default_rng(27)
U = np.concatenate([RNG.uniform(-8, 8, 20), 10 ** RNG.uniform(-12, 0, 6), [0, 2]])
M = np.concatenate([RNG.uniform(0, 1, 20), 1 - 10 ** RNG.uniform(-14, -1, 6), [0, 1]])


def test_agree_with_mpmath() -> None:
    with fxflow.config.override(x64=True):
        got = special.ellipj(U, M)
        for kind, out in zip(("sn", "cn", "dn"), got, strict=False):
            pairs = zip(U, M, strict=True)
            want = [float(mpmath.ellipfun(kind, u, m=m).real) for u, m in pairs]
            np.testing.assert_allclose(out, want, 2e-14, 4e-15)
        np.testing.assert_allclose(got[3], scipy.special.ellipj(U, M)[3], 1e-14, 2e-15)
        outside = special.ellipj(
            np.array([1.0, 1, np.inf, np.nan]), np.array([1.1, -0.1, 0, 0])
        )
        assert np.isnan(np.stack(outside)).all()
        limits = np.array(special.ellipj(np.inf, 1.0))
        np.testing.assert_allclose(limits, [1, 0, 0, np.pi / 2], atol=1e-300)
    narrow = special.ellipj(np.float32(0.5), np.float32(0.3))
    assert narrow[0].dtype == np.float32


def total(u: float, m: float) -> fxflow.Array:
    sn, cn, dn, ph = special.ellipj(u, m)
    return fnp.sum(fnp.stack([sn, 2 * cn, 3 * dn, 4 * ph]))


def test_derivatives() -> None:
    def exact(u: object, m: object) -> object:
        sn, cn, dn = (mpmath.ellipfun(k, u, m=m) for k in ("sn", "cn", "dn"))
        return sn + 2 * cn + 3 * dn + 4 * mpmath.asin(sn)

    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(total, (0, 1)))
        for u, m in ((0.7, 0.3), (1.2, 0.99), (0.5, 1e-3)):
            by_u = mpmath.diff(lambda u, m=m: exact(u, mpmath.mpf(m)), u)
            by_m = mpmath.diff(lambda m, u=u: exact(mpmath.mpf(u), m), m)
            np.testing.assert_allclose(slopes(u, m), [float(by_u), float(by_m)], 1e-9)
        near, at = slopes(0.7, 1 - 1e-9), slopes(0.7, 1.0)
        np.testing.assert_allclose(at, near, 1e-7)
        second = fxflow.grad(fxflow.grad(lambda u: special.ellipj(u, 0.3)[0]))(0.7)
        sn = scipy.special.ellipj(0.7, 0.3)[0]
        np.testing.assert_allclose(second, -1.3 * sn + 0.6 * sn**3, 1e-13)
