"""Signatures of distributions: the shapes, then `loc` and `scale`."""

from __future__ import annotations

from fxflow.numpy._operands import ArrayLike


def no_shape(loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_a(a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_b(b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_c(c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_s(s: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_df(df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_mu(mu: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_nu(nu: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_k(K: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_beta(beta: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shape_kappa(kappa: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shapes_ab(
    a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_ac(
    a: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_cd(
    c: ArrayLike, d: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_dfs(
    dfn: ArrayLike, dfd: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shape_chi(chi: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...


def shapes_abc(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...


def shapes_bc(
    b: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_beta_m(
    beta: ArrayLike, m: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_cab(
    c: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...


def shapes_cs(
    c: ArrayLike, s: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_df_nc(
    df: ArrayLike, nc: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_hk(
    h: ArrayLike, k: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...


def shapes_ks(
    k: ArrayLike, s: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...
