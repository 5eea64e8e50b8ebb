"""Calls of `fxflow.scipy.special` and `fxflow.scipy.linalg`."""

from __future__ import annotations

import numpy as np

from tests.sweeps.catalogue import (
    A,
    call,
    each,
    floating,
    inexact,
    invertible,
    like,
    made,
    positive_definite,
    real,
    whole,
)

S = "scipy.special"
L = "scipy.linalg"
UNIT = {"low": 0.1, "high": 0.9}
POSITIVE = {"low": 0.5, "high": 4.0}

SPECIAL = [
    *each(S, "digamma psi gamma gammaln gammasgn", real(3, 4, **POSITIVE)),
    *each(S, "erf erfc i0 i0e i1 i1e ndtr log_ndtr", real(3, 4)),
    *each(S, "expit", A(3, 4)),
    *each(S, "log_expit", real(3, 4)),
    *each(S, "erfinv ndtri logit", real(3, 4, **UNIT)),
    *each(S, "entr", real(3, 4, low=0.1, high=2)),
    *each(S, "beta betaln", real(3, 4, **POSITIVE), real(3, 4, **POSITIVE)),
    *each(S, "gammainc gammaincc", real(3, 4, **POSITIVE), real(3, 4, **POSITIVE)),
    *each(
        S,
        "betainc betaincc betaincinv betainccinv",
        *[real(3, 4, **POSITIVE)] * 2,
        real(3, 4, **UNIT),
    ),
    *each(
        S,
        "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri",
        whole(3, 4, low=0, high=3),
        whole(3, 4, low=4, high=9),
        floating(3, 4, **UNIT),
    ),
    *each(S, "pdtr pdtrc pdtri", whole(3, 4), floating(3, 4, **UNIT)),
    *each(S, "fdtr fdtrc", *[real(3, 4, **POSITIVE)] * 3),
    call(f"{S}.fdtri", *[real(3, 4, **POSITIVE)] * 2, real(3, 4, **UNIT)),
    *each(S, "gdtr gdtrc", *[real(3, 4, **POSITIVE)] * 3),
    call(f"{S}.gdtria", real(3, 4, **UNIT), *[real(3, 4, **POSITIVE)] * 2),
    call(f"{S}.gdtrix", *[real(3, 4, **POSITIVE)] * 2, real(3, 4, **UNIT)),
    call(f"{S}.ndtri_exp", real(3, 4, low=-9, high=-0.1)),
    call(f"{S}.stdtr", real(3, 4, **POSITIVE), real(3, 4)),
    call(f"{S}.stdtrit", real(3, 4, **POSITIVE), real(3, 4, **UNIT)),
    *each(
        S,
        "kl_div rel_entr",
        real(3, 4, **POSITIVE),
        real(3, 4, **POSITIVE),
    ),
    *each(S, "xlogy xlog1py", A(3, 4, **POSITIVE), A(3, 4, **POSITIVE)),
    call(f"{S}.poch", real(3, 4, **POSITIVE), real(3, 4, **POSITIVE)),
    *each(S, "exp1 expi", real(3, 4, low=0.6, high=4.0)),
    *each(S, "erfcx dawsn", real(3, 4)),
    call(f"{S}.wofz", A(3, 4)),
    *each(S, "spence", real(3, 4, **POSITIVE)),
    *each(S, "sici fresnel", real(3, 4, low=0.2, high=3)),
    call(f"{S}.loggamma", A(3, 4, **POSITIVE)),
    call(f"{S}.owens_t", real(3, 4), real(3, 4)),
    # Their derivatives compile for seconds: tests/scipy/special/test_cylinder.py and
    # test_spherical_bessel.py have them.
    *each(S, "j0 j1 y0 y1 k0 k1 k0e k1e", real(3, 4, **POSITIVE), differentiable=False),
    *each(
        S,
        "jv jve yv yve iv ive kv kve hankel1 hankel2",
        real(3, 4, **POSITIVE),
        real(3, 4, **POSITIVE),
        differentiable=False,
    ),
    call(f"{S}.airy", real(3, 4), differentiable=False),
    *each(
        S,
        "spherical_jn spherical_yn spherical_in spherical_kn",
        real(3, 4, **POSITIVE),
        real(3, 4, **POSITIVE),
        differentiable=False,
    ),
    *each(S, "cbrt exp2 expm1 log1p cosm1 sinc rgamma", real(3, 4, **POSITIVE)),
    call(f"{S}.lambertw", A(3, 4, **POSITIVE)),
    *each(
        S,
        "gammaincinv gammainccinv chdtri",
        real(3, 4, **POSITIVE),
        real(3, 4, **UNIT),
        differentiable=False,
    ),
    *each(
        S,
        "chdtr chdtrc",
        real(3, 4, **POSITIVE),
        real(3, 4, **POSITIVE),
        differentiable=False,
    ),
    *each(S, "erfcinv", real(3, 4, **UNIT)),
    *each(S, "huber pseudo_huber", real(3, 4, **POSITIVE), real(3, 4, **POSITIVE)),
    *each(S, "ellipk ellipkm1 ellipe", real(3, 4, **UNIT)),
    *each(S, "ellipkinc ellipeinc", real(3, 4, **UNIT), real(3, 4, **UNIT)),
    call(f"{S}.elliprc", *[real(3, 4, **POSITIVE)] * 2),
    *each(S, "elliprf elliprd elliprg", *[real(3, 4, **POSITIVE)] * 3),
    call(f"{S}.elliprj", *[real(3, 4, **POSITIVE)] * 4),
    call(f"{S}.bessel_jn", real(3, 4, **POSITIVE), v=2),
    call(f"{S}.hyp1f1", *[real(3, 4, **POSITIVE)] * 3),
    call(f"{S}.hyp2f1", *[real(3, 4, **POSITIVE)] * 3, real(3, 4, low=-0.9, high=0)),
    call(f"{S}.sph_harm_y", 2, 1, real(3, 4, **UNIT), real(3, 4, **UNIT)),
    call(f"{S}.expn", 2, real(3, 4, **POSITIVE)),
    call(f"{S}.comb", real(3, 4, low=4, high=6), real(3, 4, low=1, high=3)),
    *each(S, "boxcox boxcox1p", real(3, 4, **POSITIVE), real(3, 4, **POSITIVE)),
    call(f"{S}.bernoulli", 4),
    call(f"{S}.factorial", whole(3, 4, high=6)),
    call(f"{S}.polygamma", 2, real(3, 4, **POSITIVE)),
    call(f"{S}.zeta", real(3, 4, low=2, high=4), real(3, 4, **POSITIVE)),
    call(f"{S}.multigammaln", real(3, low=4, high=6), 2),
    *each(S, "softmax log_softmax logsumexp", A(3, 4), axis=1),
    call(f"{S}.logsumexp", real(3, 4), b=real(4, low=0.5, high=2), note="weights"),
]

LINALG = [
    *each(L, "det inv", invertible(3, 3)),
    *each(L, "cholesky", positive_definite(3, 3)),
    *each(L, "eigh", positive_definite(3, 3), eigvals_only=True),
    *each(L, "svd", inexact(3, 4), compute_uv=False),
    *each(
        L, "lu qr svd", inexact(3, 4), numpy="", note="factors", differentiable=False
    ),
    *each(L, "lu_factor", invertible(3, 3), numpy="", differentiable=False),
    *each(L, "schur hessenberg", invertible(3, 3), numpy="", differentiable=False),
    *each(L, "cho_factor", positive_definite(3, 3), numpy=""),
    call(f"{L}.cho_solve", (positive_definite(3, 3), False), inexact(3, 2)),
    call(
        f"{L}.lu_solve",
        (invertible(3, 3), np.array([0, 1, 2], np.int32)),
        inexact(3, 2),
    ),
    *each(L, "solve", invertible(3, 3), inexact(3, 2)),
    *each(L, "solve_triangular", invertible(3, 3), inexact(3, 2), lower=True),
    *each(L, "expm", inexact(3, 3)),
    *each(L, "sqrtm", positive_definite(3, 3)),
    *each(L, "norm", inexact(3, 4)),
    *each(L, "block_diag", A(2, 2), A(1, 3)),
    *each(L, "toeplitz hankel", A(4), A(3)),
    *each(L, "circulant", A(4)),
    call(f"{L}.solve_sylvester", invertible(3, 3), invertible(2, 2), inexact(3, 2)),
    *each(L, "polar", invertible(3, 3)),
    *each(L, "expm_frechet", inexact(3, 3), inexact(3, 3)),
    call(f"{L}.qr_multiply", inexact(3, 3), inexact(2, 3), differentiable=False),
    call(f"{L}.eigh_tridiagonal", floating(4), floating(3), eigvals_only=True),
    *each(L, "fiedler", real(4)),
    *each(L, "companion fiedler_companion", inexact(4, low=0.5)),
    *each(L, "convolution_matrix", A(3), 4),
    *each(L, "leslie", A(3), A(2)),
    *each(L, "dft hadamard helmert hilbert invhilbert pascal invpascal", 4),
    call(
        f"{L}.rsf2csf",
        made(
            lambda rng, s: np.triu(rng.normal(size=s)) + np.diag(np.arange(s[0])), 3, 3
        ),
        floating(3, 3),
        numpy="",
        differentiable=False,
    ),
]

EXEMPT = {f"{L}.funm": "takes a function"}

CALLS = like("scipy.special", SPECIAL) + like("scipy.linalg", LINALG)
