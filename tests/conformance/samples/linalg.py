"""Samples of the decompositions and solvers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.lax import linalg
from fxflow.lax.linalg.library import adjoint, as_columns, corner, matmul
from tests.conformance.harness import Sample, scale, uniform

DTYPES = ("float32", "float64", "complex64")
SHAPES = ((3, 3), (2, 4, 2), (2, 3), (1, 1))


def positive(rng: np.random.Generator, shape: Any, dtype: str) -> Any:
    x = uniform(rng, shape, dtype, -1, 1)
    return (x @ np.swapaxes(x.conj(), -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


def regular(rng: np.random.Generator, shape: Any, dtype: str = "float32") -> Any:
    """Matrices with singular values far apart."""
    m, n = shape[-2:]
    rows = (np.arange(m) + 1.0)[:, None] * np.eye(m, n)
    return (uniform(rng, shape, dtype, -0.3, 0.3) + rows).astype(dtype)


def derivatives(shape: Any, dtype: str) -> dict[str, Any]:
    """How much to check: derivatives are taken in 64 bits, so not for each dtype."""
    return {
        "vary": scale,
        "diff": dtype != "float64",
        "second": shape == (3, 3),
    }


def cholesky(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample((positive(rng, shape, dtype),), function=linalg.cholesky, vary=scale,
               oracle=np.linalg.cholesky)
        for dtype in DTYPES
        for shape in ((3, 3), (2, 2, 2), (1, 1))
    ]  # fmt: skip
    bad = np.array([[[1, 2], [2, 1]], [[2, 1], [1, 2]]], "float32")
    return [
        *out,
        Sample((bad,), {}, "not positive", diff=False),
        Sample((np.zeros((2, 0, 0), "f4"),), {}, "empty", diff=False),
    ]


def triangular(rng: np.random.Generator) -> list[Sample]:
    out = []
    names = ("left_side", "lower", "transpose_a", "unit_diagonal")
    for flags in itertools.product((False, True), repeat=4):
        params = dict(zip(names, flags, strict=True))
        a = uniform(rng, (3, 3), "float32", -0.5, 0.5) + 2 * np.eye(3, dtype="f4")
        b = uniform(rng, (3, 2) if params["left_side"] else (2, 3))
        out.append(Sample((a, b), {**params, "conjugate_a": False}, second=False))
    rest = {"lower": True, "unit_diagonal": False, "left_side": True}
    for dtype, turn, conj in itertools.product(
        ("float64", "complex64"), (False, True), (False, True)
    ):
        if conj and not (turn and dtype == "complex64"):
            continue
        a = uniform(rng, (2, 3, 3), dtype, -0.5, 0.5) + 2 * np.eye(3).astype(dtype)
        b = uniform(rng, (2, 3, 2), dtype)
        params = {**rest, "transpose_a": turn, "conjugate_a": conj}
        out.append(Sample((a, b), params, diff=dtype == "complex64", second=conj))
    empty = np.zeros((3, 3), "f4"), np.zeros((3, 0), "f4")
    params = {**rest, "transpose_a": False, "conjugate_a": False}
    return [*out, Sample(empty, params, "empty", diff=False)]


def lu(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample((regular(rng, shape, dtype),), **derivatives(shape, dtype))
        for dtype in DTYPES
        for shape in SHAPES
    ]
    shuffled = uniform(rng, (4, 4))[::-1].copy()
    return [
        *out,
        Sample((shuffled,), diff=False),
        Sample((np.zeros((2, 3, 0), "f4"),), name="empty", diff=False),
        Sample((np.zeros((2, 2), "f4"),), name="singular", diff=False),
    ]


def reflectors(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((regular(rng, shape, dtype),), diff=False)
        for dtype in DTYPES
        for shape in SHAPES
    ]


def householder(rng: np.random.Generator) -> list[Sample]:
    out = []
    for dtype in DTYPES:
        for shape, count in (((3, 3), 3), ((2, 4, 2), 2), ((4, 3), 2), ((3, 2), 0)):
            taus = uniform(rng, (*shape[:-2], count), dtype)
            out.append(Sample((uniform(rng, shape, dtype), taus), diff=False))
    return out


def qr(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample(
            (regular(rng, shape, dtype),),
            {"full_matrices": False},
            **derivatives(shape, dtype),
        )
        for dtype in DTYPES
        for shape in SHAPES
    ]
    tall = {"full_matrices": True}
    return [
        *out,
        Sample((regular(rng, (4, 2)),), tall, "full", diff=False),
        Sample((regular(rng, (2, 4)),), tall, "full, wide", vary=scale),
        Sample((np.zeros((3, 0), "f4"),), tall, "empty", diff=False),
    ]


def pivoted_qr(rng: np.random.Generator) -> list[Sample]:
    thin, full = {"full_matrices": False}, {"full_matrices": True}
    out = [
        Sample((regular(rng, shape, dtype),), thin, **derivatives(shape, dtype))
        for dtype in DTYPES
        for shape in SHAPES
    ]
    out += [
        Sample((regular(rng, (4, 2)),), full, "full", diff=False),
        Sample((regular(rng, (2, 4)),), full, "full, wide", vary=scale),
        Sample((np.zeros((3, 0), "f4"),), full, "empty", diff=False),
    ]
    return [replace(sample, platforms=("cpu", "gpu")) for sample in out]


def pivoted_reflectors(rng: np.random.Generator) -> list[Sample]:
    empty = Sample((np.zeros((2, 0, 3), "f4"),), name="empty", diff=False)
    out = [*reflectors(rng), empty]
    return [replace(sample, platforms=("cpu", "gpu")) for sample in out]


def reflected(rng: np.random.Generator) -> list[Sample]:
    out = []
    for dtype in DTYPES:
        for left, turned in itertools.product((False, True), repeat=2):
            a, taus = uniform(rng, (2, 4, 3), dtype), uniform(rng, (2, 2), dtype)
            c = uniform(rng, (2, 4, 5) if left else (2, 5, 4), dtype)
            params = {"left": left, "transpose": turned}
            out.append(Sample((a, taus, c), params, diff=False))
    none = uniform(rng, (3, 2)), np.zeros(0, "f4"), uniform(rng, (3, 2))
    params = {"left": True, "transpose": False}
    return [*out, Sample(none, params, "none", diff=False)]


def condensed(rng: np.random.Generator, **params: Any) -> list[Sample]:
    return [
        Sample((regular(rng, shape, dtype),), params, diff=False,
               platforms=("cpu", "gpu"))
        for dtype in DTYPES
        for shape in ((4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 2))
    ]  # fmt: skip


def schur(rng: np.random.Generator) -> list[Sample]:
    out = condensed(rng, vectors=True) + condensed(rng, vectors=False)
    turn = np.array([[0, -1], [1, 0]], "f4")
    bad = Sample(
        (np.full((2, 2), np.nan, "f4"),), {"vectors": False}, "nan", diff=False
    )
    return [*out, Sample((turn,), {"vectors": True}, "pair", diff=False), bad]


def tridiagonals(rng: np.random.Generator) -> list[Sample]:
    out = []
    for lower in (True, False):
        for sample in condensed(rng, lower=lower):
            (x,) = sample.args
            x = x + np.swapaxes(x.conj(), -1, -2)
            out.append(replace(sample, args=(x,)))
    return out


def eigh(rng: np.random.Generator) -> list[Sample]:
    def parts(x: Any) -> Any:
        v, w = linalg.eigh(x)
        return lax.abs(v), w

    def rebuilt(x: Any) -> Any:
        v, w = linalg.eigh(x, symmetrize_input=False)
        wide = lax.convert_element_type(as_columns(w, v.shape), v.dtype)
        return matmul(lax.mul(v, wide), adjoint(v))

    out = []
    for dtype in DTYPES:
        x = regular(rng, (2, 3, 3), dtype)
        out.append(Sample((x,), function=parts, vary=scale, slack=10))
        x = (x + np.swapaxes(x.conj(), -1, -2)).astype(dtype)
        out.append(
            Sample((x,), function=rebuilt, oracle=lambda x: x, diff=False, vary=scale)
        )
    upper = np.array([[1, 5], [9, 2]], "float32")
    return [
        *out,
        Sample((upper,), function=lambda x: linalg.eigh(
            x, lower=False, symmetrize_input=False)[1], diff=False,
            oracle=lambda x: np.linalg.eigh(x, "U")[0]),
        Sample((np.zeros((2, 0, 0), "f4"),), {"lower": True}, "empty", diff=False),
    ]  # fmt: skip


def svd(rng: np.random.Generator) -> list[Sample]:
    def parts(x: Any) -> Any:
        u, s, vh = linalg.svd(x, full_matrices=False)
        return lax.abs(u), s, lax.abs(vh)

    def rebuilt(full: bool) -> Any:
        def function(x: Any) -> Any:
            u, s, vh = linalg.svd(x, full_matrices=full)
            k = min(x.shape[-2:])
            u, vh = corner(u, x.shape[-2], k), corner(vh, k, x.shape[-1])
            wide = lax.convert_element_type(as_columns(s, u.shape), u.dtype)
            return matmul(lax.mul(u, wide), vh)

        return function

    out = []
    for dtype in DTYPES:
        for shape in SHAPES:
            x = regular(rng, shape, dtype)
            alone = {"full_matrices": True, "compute_uv": False}
            out += [
                Sample((x,), alone, **derivatives(shape, dtype)),
                Sample(
                    (x,),
                    function=parts,
                    slack=10,
                    **{**derivatives(shape, dtype), "second": False},
                ),
            ]
            out += [
                Sample((x,), function=rebuilt(full), oracle=lambda x: x, diff=False)
                for full in (False, True)
            ]
    both = {"full_matrices": True, "compute_uv": True}
    return [
        *out,
        Sample((np.zeros((3, 0), "f4"),), both, "empty", diff=False),
        Sample((regular(rng, (3, 3)),), function=parts, vary=scale, slack=10),
    ]


def eig(rng: np.random.Generator) -> list[Sample]:
    def values(x: Any) -> Any:
        (w,) = linalg.eig(
            x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )
        return w

    def rebuilt(x: Any) -> Any:
        w, u, v = linalg.eig(x)
        right = lax.mul(v, as_columns(w, v.shape))
        left = lax.mul(u, as_columns(lax.conj(w), u.shape))
        x = lax.convert_element_type(x, v.dtype)
        return lax.sub(matmul(x, v), right), lax.sub(matmul(adjoint(x), u), left)

    def lengths(x: Any) -> Any:
        w, v = linalg.eig(x, compute_left_eigenvectors=False)
        return w, lax.abs(v)

    out = []
    for dtype in DTYPES:
        x = regular(rng, (2, 3, 3), dtype)
        out += [
            Sample(
                (x,), function=values, vary=scale, tol=1e-4, diff=dtype != "float64"
            ),
            Sample(
                (x,),
                function=lengths,
                vary=scale,
                tol=1e-4,
                slack=10,
                diff=dtype != "float64",
                second=dtype == "float32",
            ),
            Sample((x,), function=rebuilt, diff=False, vary=scale, tol=1e-4,
                   oracle=lambda x: (0j * x,) * 2 if x.dtype.kind == "c" else
                   (0 * x.astype("c8" if x.dtype == "f4" else "c16"),) * 2),
        ]  # fmt: skip
    out = [replace(sample, platforms=("cpu", "gpu")) for sample in out]
    empty = {"left": True, "right": True}
    return [*out, Sample((np.zeros((0, 0), "f4"),), empty, "empty", diff=False)]


def tridiagonal(rng: np.random.Generator) -> list[Sample]:
    out = []
    for dtype in DTYPES:
        for shape, sides in (((4,), 2), ((2, 3), 1), ((1,), 1)):
            d = (uniform(rng, shape, dtype) + 5).astype(dtype)
            dl, du = uniform(rng, shape, dtype), uniform(rng, shape, dtype)
            b = uniform(rng, (*shape, sides), dtype)
            out.append(
                Sample(
                    (dl, d, du, b),
                    diff=dtype != "float64",
                    second=dtype == "float32" and sides == 2,
                )
            )
    empty = np.zeros((0,), "f4")
    last = Sample(
        (empty, empty, empty, np.zeros((0, 2), "f4")), name="empty", diff=False
    )
    return [*out, last]


SAMPLES = {
    "cholesky": cholesky,
    "triangular_solve": triangular,
    "lu": lu,
    "geqrf": reflectors,
    "householder_product": householder,
    "geqp3": pivoted_reflectors,
    "ormqr": reflected,
    "pivoted_qr": pivoted_qr,
    "hessenberg": condensed,
    "tridiagonal": tridiagonals,
    "schur": schur,
    "qr": qr,
    "eigh": eigh,
    "svd": svd,
    "eig": eig,
    "tridiagonal_solve": tridiagonal,
}
