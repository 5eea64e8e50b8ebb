"""Objects, minimizers and solvers of `fxflow.scipy` against SciPy.

Each case is a program that runs with either library: it gets the package and arrays,
makes objects, calls their methods and returns arrays. The shapes and the values have to
agree, at once and under `jit`, in 64 and in 32 bits.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
import fxflow.scipy
from fxflow import config, jit
from tests.sweeps.sampling import sample

scipy = pytest.importorskip("scipy")

NAN, INF = np.nan, np.inf
#: How far values may be apart, by the dtype.
NEAR = {"float64": 1e-9, "float32": 2e-4}


@dataclasses.dataclass(frozen=True)
class Case:
    """A program for both libraries.

    Attributes:
      name: says what it does.
      run: called with `fxflow.scipy` or `scipy`, and arrays of the dtype.
      arrays: of 64 bits.
      dtypes: in which it runs.
      near: a tolerance in place of the dtype's, in 64 bits.
    """

    name: str
    run: Callable[..., Any]
    arrays: tuple[Any, ...]
    dtypes: tuple[str, ...] = ("float64", "float32")
    near: float = NEAR["float64"]

    def __str__(self) -> str:
        return f"{self.name}{[a.shape for a in self.arrays]}"


CASES: list[Case] = []


def case(name: str, run: Callable[..., Any], *arrays: Any, **options: Any) -> None:
    arrays = tuple(np.asarray(a) for a in arrays)
    CASES.append(Case(name, run, arrays, **options))


def real(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(repr((shape, len(CASES))).encode()))
    return np.asarray(rng.normal(size=shape))


def positive(*shape: int) -> np.ndarray:
    return np.asarray(abs(real(*shape)) + 0.3)


def definite(n: int) -> np.ndarray:
    a = real(n, n)
    return np.asarray(a @ a.T + n * np.eye(n))


# -- rotations -------------------------------------------------------------------------

_READ: dict[str, Callable[[Any], Any]] = {
    "as_matrix": lambda r: r.as_matrix(),
    "as_quat": lambda r: r.as_quat(canonical=True),
    "as_quat, scalar first": lambda r: r.as_quat(canonical=True, scalar_first=True),
    "as_rotvec": lambda r: r.as_rotvec(),
    "as_rotvec, degrees": lambda r: r.as_rotvec(degrees=True),
    "as_mrp": lambda r: r.as_mrp(),
    "magnitude": lambda r: r.magnitude(),
    "inv": lambda r: r.inv().as_matrix(),
    "as_euler xyz": lambda r: r.as_euler("xyz"),
    "as_euler ZXZ": lambda r: r.as_euler("ZXZ", degrees=True),
    "apply": lambda r: r.apply(np.array([1.0, -2, 0.5], "float32")),
    "apply, back": lambda r: r.apply(np.eye(3, dtype="float32")[:1], inverse=True),
    "power": lambda r: (r**0.5).as_matrix(),
    "power -1": lambda r: (r**-1).as_matrix(),
    "power 0": lambda r: (r**0).as_matrix(),
    "power 2.5": lambda r: (r**2.5).as_matrix(),
    "product": lambda r: (r * r.inv() * r).as_matrix(),
}
_MAKE: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "from_quat": (lambda R, x: R.from_quat(x), 4),
    "from_quat, first": (lambda R, x: R.from_quat(x, scalar_first=True), 4),
    "from_rotvec": (lambda R, x: R.from_rotvec(x), 3),
    "from_rotvec, deg": (lambda R, x: R.from_rotvec(40 * x, degrees=True), 3),
    "from_mrp": (lambda R, x: R.from_mrp(x), 3),
    "from_euler xyz": (lambda R, x: R.from_euler("xyz", x), 3),
    "from_euler XY": (lambda R, x: R.from_euler("XY", 40 * x, degrees=True), 2),
    "from_euler Z": (lambda R, x: R.from_euler("Z", x), 1),
}


def _rotated(make: Any, read: Any) -> Callable[..., Any]:
    return lambda s, x: read(make(s.spatial.transform.Rotation, x))


for (_made, (_make, _n)), (_name, _read) in itertools.product(
    _MAKE.items(), _READ.items()
):
    for _shape in ((_n,), (5, _n), (1, _n), (0, _n)):
        case(f"{_made}, {_name}", _rotated(_make, _read), real(*_shape))
_AT_THE_EDGE = {
    "half turns": np.pi * np.array([[1.0, 0, 0], [0, -1, 0], [0, 0.6, 0.8]]),
    "whole turns": 2 * np.pi * np.array([[1.0, 0, 0], [0, 0.6, 0.8]]),
    "many turns": np.array([[30.0, -40, 20], [0, 0, 99]]),
    "tiny turns": np.array([[1e-5, -2e-6, 0], [1e-12, 0, 0], [0, 0, 0]]),
}
for (_kind, _x), (_name, _read) in itertools.product(
    _AT_THE_EDGE.items(), _READ.items()
):
    # Where an axis has two signs, the sign of 1e-16 decides.
    _lost = _kind == "half turns" and _name.startswith(("as_", "power"))
    # Nor have angles of which only the sum is known.
    if not _lost and not (_kind == "whole turns" and "ZXZ" in _name):
        case(f"{_kind}, {_name}", _rotated(_MAKE["from_rotvec"][0], _read), _x)


def _rotations(s: Any, q: Any) -> Any:
    return s.spatial.transform.Rotation.from_quat(q)


case("identity", lambda s: s.spatial.transform.Rotation.identity().as_matrix())
for _num in (None, 0, 1, 3):
    case(
        f"identity {_num}",
        lambda s, n=_num: s.spatial.transform.Rotation.identity(n).as_matrix(),
    )
for _n, _m in ((1, 3), (3, 1), (3, 3), (0, 0), (1, 0)):
    case("apply", lambda s, q, v: _rotations(s, q).apply(v), real(_n, 4), real(_m, 3))
    case(
        "product",
        lambda s, q, p: (_rotations(s, q) * _rotations(s, p)).as_matrix(),
        real(_n, 4),
        real(_m, 4),
    )
for _shapes in (((4,), (3,)), ((4,), (5, 3)), ((5, 4), (3,)), ((4,), (0, 3))):
    case(
        "apply",
        lambda s, q, v: _rotations(s, q).apply(v),
        *[real(*shape) for shape in _shapes],
    )
case("mean", lambda s, q: _rotations(s, q).mean().as_matrix(), real(6, 4))
case("mean of one", lambda s, q: _rotations(s, q).mean().as_matrix(), real(4))
case(
    "mean, weights",
    lambda s, q, w: _rotations(s, q).mean(w).as_matrix(),
    real(6, 4),
    positive(6),
)
case(
    "concatenate",
    lambda s, q, p: s.spatial.transform.Rotation.concatenate(
        [_rotations(s, q), _rotations(s, p)]
    ).as_matrix(),
    real(3, 4),
    real(4),
)
for _index in (
    0,
    -1,
    slice(1, 3),
    np.array([2, 0]),
    np.array([True, False, True]),
    slice(0, 0),
):
    case(
        f"elements {_index}",
        lambda s, q, i=_index: _rotations(s, q)[i].as_matrix(),
        real(3, 4),
    )
case(
    "from_matrix",
    lambda s, q: s.spatial.transform.Rotation.from_matrix(
        _rotations(s, q).as_matrix()
    ).as_quat(canonical=True),
    np.concatenate([np.eye(4), real(4, 4)]),
)
for _seq in ("xyz", "xyx", "zxz", "YZX", "YXY", "XYZ"):
    case(
        f"angles {_seq}",
        lambda s, a, seq=_seq: s.spatial.transform.Rotation.from_euler(seq, a).as_euler(
            seq
        ),
        real(4, 3),
    )


def _slerp(s: Any, times: Any, q: Any, at: Any) -> Any:
    made = s.spatial.transform.Slerp(times, _rotations(s, q))(at)
    return made.as_matrix(), made.as_quat(canonical=True)


_times = np.array([-1.0, 0, 0.5, 4])
for _at in (0.0, [0.3, -1, 4, 3.9, 0.5], [], [0.1]):
    case("slerp", _slerp, _times, real(4, 4), np.array(_at, float))
case("slerp of two", _slerp, _times[1:3], real(2, 4), np.array([0.1, 0.4]))
_same = np.array([[0.0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, -1]])
case("slerp of the same", _slerp, _times[1:], _same, np.array([0.1, 3.0]))


# -- densities -------------------------------------------------------------------------


def _kde(read: Any, **settings: Any) -> Callable[..., Any]:
    def run(s: Any, x: Any, *rest: Any) -> Any:
        return read(s.stats.gaussian_kde(x, **settings), *rest)

    return run


def _weighted(read: Any, **settings: Any) -> Callable[..., Any]:
    def run(s: Any, x: Any, w: Any, *rest: Any) -> Any:
        return read(s.stats.gaussian_kde(x, weights=w, **settings), *rest)

    return run


_parts = lambda k: (k.dataset, k.weights, k.covariance, k.inv_cov, k.neff, k.d, k.n)
_AT: dict[str, Callable[..., Any]] = {
    "evaluate": lambda k, at: k.evaluate(at),
    "call": lambda k, at: k(at),
    "pdf": lambda k, at: k.pdf(at),
    "logpdf": lambda k, at: k.logpdf(at),
}
for _shape in ((7,), (1, 7), (2, 9), (3, 20)):
    _d = _shape[0] if len(_shape) == 2 else 1
    for _method in (None, "scott", "silverman", 0.4, lambda k: 0.3 * k.neff**0.1):
        _set = {"bw_method": _method}
        _known = _method if not callable(_method) else "function"
        case(f"kde parts {_known}", _kde(_parts, **_set), real(*_shape))
        for _name, _read in _AT.items():
            for _points in ((_d, 4), (_d, 1), (_d, 0), (_d,), *[(5,)] * (_d == 1)):
                case(
                    f"kde {_name} {_known}",
                    _kde(_read, **_set),
                    real(*_shape),
                    real(*_points),
                )
        _w = positive(_shape[-1])
        case(f"kde weights {_known}", _weighted(_parts, **_set), real(*_shape), _w)
        case(
            f"kde weights, pdf {_known}",
            _weighted(_AT["pdf"], **_set),
            real(*_shape),
            _w,
            real(_d, 4),
        )
    case(
        "kde integrate_gaussian",
        _kde(lambda k, m, c: k.integrate_gaussian(m, c)),
        real(*_shape),
        real(_d),
        definite(_d),
    )

    def _of_two(s: Any, x: Any, y: Any, w: Any) -> Any:
        kde = s.stats.gaussian_kde
        first, second = kde(x), kde(y, 0.5, w)
        return first.integrate_kde(second), second.integrate_kde(first)

    case("kde integrate_kde", _of_two, real(*_shape), real(_d, 12), positive(12))
    if _d == 1:
        for _low, _high in (
            (-0.5, 1.0),
            (-INF, 0.3),
            (-INF, INF),
            (2.0, 1.0),
            (NAN, 1),
        ):
            case(
                "kde integrate_box_1d",
                _kde(lambda k, a, b: k.integrate_box_1d(a, b)),
                real(*_shape),
                _low,
                _high,
            )
            case(
                "kde integrate_box_1d, weights",
                _weighted(lambda k, a, b: k.integrate_box_1d(a, b)),
                real(*_shape),
                positive(7),
                _low,
                _high,
            )
case(
    "kde of large numbers",
    _kde(_AT["pdf"]),
    1e6 + real(9),
    1e6 + real(3),
    dtypes=("float64",),
)
case("kde of tiny numbers", _kde(_AT["logpdf"]), 1e-12 * real(9), 1e-12 * real(3))
case(
    "kde, zero weights",
    _weighted(_AT["pdf"]),
    real(4),
    np.array([0.0, 1, 2, 0]),
    real(3),
)


# -- grids -----------------------------------------------------------------------------

_x = np.array([-1.0, 0, 0.5, 2])
_y = np.array([0.0, 1, 3])
_z = np.array([2.0, 1.5])
_IN = {
    1: np.array([[-1.0], [-0.3], [0], [0.25], [1.25], [2]]),
    2: np.array([[-1.0, 0], [0.25, 2], [1.9, 3], [0, 0.5], [0.3, 1]]),
    3: np.array([[-1.0, 0, 2], [0.25, 2, 1.6], [1.9, 3, 1.5]]),
}
_OUT = np.array([[-1.5, 0], [0.25, 4], [NAN, 1], [INF, 2], [0, NAN], [9, NAN]])


def _grid(count: int, **settings: Any) -> Callable[..., Any]:
    called = {k: settings.pop(k) for k in ("method",) if count < 0}
    count = abs(count)

    def run(s: Any, *arrays: Any) -> Any:
        points, values, at = arrays[:count], arrays[count], arrays[count + 1 :]
        made = s.interpolate.RegularGridInterpolator(points, values, **settings)
        return made(at[0] if len(at) == 1 else tuple(at), **called)

    return run


for _method in ("linear", "nearest"):
    _set = {"method": _method, "bounds_error": False}
    for _turned in (1, -1):
        _xs = _x[::_turned]
        case("grid 1", _grid(1, **_set), _xs, real(4), _IN[1])
        case("grid 1, vector", _grid(1, **_set), _xs, real(4), _IN[1][:, 0])
        case("grid 1, empty", _grid(1, **_set), _xs, real(4), np.zeros((0, 1)))
        case("grid 1, rest", _grid(1, **_set), _xs, real(4, 2), _IN[1])
        for _d, _axes in ((2, (_xs, _y)), (3, (_xs, _y, _z))):
            _shape = tuple(a.size for a in _axes)
            _values = [real(*_shape), real(*_shape, 2, 3)]
            _values += [real(*_shape) + 1j * real(*_shape)]
            if _method == "linear":  # SciPy converts NaN to an integer for the other
                _values += [np.arange(np.prod(_shape)).reshape(_shape)]
            for _v in _values:
                _n = f"grid {_d} {_method} {_turned} {_v.dtype}"
                case(_n, _grid(_d, **_set), *_axes, _v, _IN[_d])
                case(_n, _grid(-_d, **_set), *_axes, _v, _IN[_d])
                case(f"{_n}, a point", _grid(_d, **_set), *_axes, _v, _IN[_d][0])
                case(f"{_n}, empty", _grid(_d, **_set), *_axes, _v, np.zeros((0, _d)))
                _at = np.stack([_IN[_d]] * 2)
                case(f"{_n}, points[2, n]", _grid(_d, **_set), *_axes, _v, _at)
                _parts_at = _IN[_d].T
                case(f"{_n}, tuple", _grid(_d, **_set), *_axes, _v, *_parts_at)
        for _fill in (NAN, None, 0.5, 7):
            for _v in (real(4, 3), 1j * real(4, 3), real(4, 3, 2)):
                _n = f"grid, outside {_method} {_fill} {_v.dtype}"
                _out = _OUT if _fill is not None else _OUT[:3]
                case(_n, _grid(2, fill_value=_fill, **_set), _xs, _y, _v, _out)
case("grid of nan", _grid(2), _x, _y, np.where(real(4, 3) > 0.5, NAN, 1.0), _IN[2])
case(
    "grid of whole axes", _grid(1), np.arange(4), np.arange(4) ** 2, np.array([0.5, 2])
)


# -- minima ----------------------------------------------------------------------------


def _bowl(x: Any, *shift: Any) -> Any:
    out = 0.0
    for i in range(x.shape[0]):
        out = out + (i + 1) * (x[i] - i - (shift[0] if shift else 0)) ** 2
    return out


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _minimum(fun: Any, method: str, **settings: Any) -> Callable[..., Any]:
    def run(s: Any, x0: Any, *args: Any) -> Any:
        how = method if s is fxflow.scipy or method == "BFGS" else "L-BFGS-B"
        found = s.optimize.minimize(fun, x0, args, method=how, **settings)
        return found.x, found.fun, found.success

    return run


for _method in ("BFGS", "L-BFGS", "l-bfgs-b"):
    for _n in (1, 2, 5):
        _n0 = f"minimum {_method} {_n}"
        _set = {"near": 1e-4}
        case(_n0, _minimum(_bowl, _method), real(_n), **_set)
        case(f"{_n0}, args", _minimum(_bowl, _method), real(_n), 0.5, **_set)
        case(f"{_n0}, tol", _minimum(_bowl, _method, tol=1e-3), real(_n), near=0.05)
    case(
        f"minimum {_method}, curved",
        _minimum(_rosenbrock, _method),
        np.array([-1.2, 1]),
        near=1e-3,
        dtypes=("float64",),
    )
    case(f"minimum {_method}, found", _minimum(_bowl, _method), np.arange(3.0))


# -- solvers ---------------------------------------------------------------------------


def _solved(
    solver: str, tol: float = 1e-12, function: bool = False, **settings: Any
) -> Callable[..., Any]:
    """A solver's answer, of a matrix or, where `function` is set, of a function."""

    def run(s: Any, a: Any, b: Any, *rest: Any) -> Any:
        ours = s is fxflow.scipy
        known = dict(zip(("x0", "M"), rest, strict=False))
        known = {k: v for k, v in known.items() if v.ndim}
        solve = getattr(s.sparse.linalg, solver)
        if ours:
            known["tol"] = tol if a.dtype == np.float64 else 1e-6
        else:
            known["rtol"] = tol
        a = (lambda v, m=a: m @ v) if ours and function else a
        return solve(a, b, **known, **settings)[0]

    return run


_zero = np.zeros(())
for _solver in ("cg", "bicgstab", "gmres"):
    _a, _b = definite(5), real(5)
    if _solver != "cg":
        _a = _a + real(5, 5)
    _set = {"near": 1e-7}
    _n = f"solve {_solver}"
    case(_n, _solved(_solver), _a, _b, **_set)
    case(f"{_n}, function", _solved(_solver, function=True), _a, _b, **_set)
    case(f"{_n}, x0", _solved(_solver), _a, _b, real(5), **_set)
    case(f"{_n}, x0 found", _solved(_solver), _a, _b, np.linalg.solve(_a, _b), **_set)
    case(f"{_n}, M", _solved(_solver), _a, _b, _zero, np.diag(1 / np.diag(_a)), **_set)
    case(
        f"{_n}, M, x0",
        _solved(_solver),
        _a,
        _b,
        real(5),
        np.diag(1 / np.diag(_a)),
        **_set,
    )
    case(f"{_n}, M exact", _solved(_solver), _a, _b, _zero, np.linalg.inv(_a), **_set)
    case(f"{_n}, zero", _solved(_solver), _a, np.zeros(5), **_set)
    case(f"{_n}, zero, x0", _solved(_solver), _a, np.zeros(5), real(5), **_set)
    case(f"{_n}, tiny", _solved(_solver), _a, 1e-15 * _b, **_set)
    case(f"{_n}, large", _solved(_solver), 1e8 * _a, 1e8 * _b, **_set)
    case(f"{_n}, one", _solved(_solver), np.array([[4.0]]), np.array([2.0]), **_set)
    case(f"{_n}, diagonal", _solved(_solver), np.diag([1.0, 2, 3]), real(3), **_set)
    case(f"{_n}, identity", _solved(_solver), np.eye(4), real(4), **_set)
    case(
        f"{_n}, atol",
        _solved(_solver, 0.0, atol=1e-10),
        _a,
        _b,
        **_set,
        dtypes=("float64",),
    )
    case(f"{_n}, loose atol", _solved(_solver, 0.0, atol=1e3), _a, _b, **_set)
    # A singular system that has solutions, from 0: the one in the range.
    _s = np.diag([1.0, 2, 0, 3])
    case(f"{_n}, singular", _solved(_solver), _s, _s @ real(4), **_set)
    if _solver != "gmres":
        case(f"{_n}, no step", _solved(_solver, maxiter=0), _a, _b, real(5), **_set)
        case(f"{_n}, one step", _solved(_solver, maxiter=1), _a, _b, **_set)
        case(f"{_n}, two steps", _solved(_solver, maxiter=2), _a, _b, **_set)
    _complex = definite(4) + 1j * np.triu(real(4, 4), 1)
    _complex = _complex + np.conj(_complex.T)
    case(
        f"{_n}, complex",
        _solved(_solver),
        _complex + 9 * np.eye(4),
        real(4) + 1j * real(4),
        dtypes=("float64",),
        **_set,
    )
    case(
        f"{_n}, complex of real",
        _solved(_solver),
        _complex + 9 * np.eye(4),
        real(4),
        dtypes=("float64",),
        **_set,
    )
for _restart in (1, 2, 5, 20):
    _a = definite(5) + real(5, 5)
    _set = {"restart": _restart, "maxiter": 500}
    case(
        f"solve gmres, restart {_restart}",
        _solved("gmres", **_set),
        _a,
        real(5),
        near=1e-7,
    )
    if _restart < 5:
        _set["maxiter"] = 1
        case(
            f"solve gmres, restart {_restart}, once",
            _solved("gmres", **_set),
            _a,
            real(5),
            near=1e-7,
        )


# -- factors ---------------------------------------------------------------------------


def _cho(lower: bool, **settings: Any) -> Callable[..., Any]:
    def run(s: Any, a: Any, b: Any) -> Any:
        factor = s.linalg.cho_factor(a, lower=lower)
        return s.linalg.cho_solve((factor[0], lower), b, **settings)

    return run


def _lu(trans: int, **settings: Any) -> Callable[..., Any]:
    def run(s: Any, a: Any, b: Any) -> Any:
        lu, piv = s.linalg.lu_factor(a)
        return lu, piv, s.linalg.lu_solve((lu, piv), b, trans=trans, **settings)

    return run


for _a in (
    definite(4),
    definite(3) + 0.3j * (lambda t: t - t.T)(np.triu(real(3, 3), 1)),
):
    _n = len(_a)
    _kinds = ("float64", "float32") if _a.dtype.kind == "f" else ("float64",)
    for _shape in ((_n,), (_n, 1), (_n, 2), (_n, 0)):
        for _b in (real(*_shape), real(*_shape) + 1j):
            if _b.dtype.kind == "c" and _a.dtype.kind == "f":
                continue
            for _lower in (True, False):
                case(
                    f"cho_solve {_lower} {_a.dtype}",
                    _cho(_lower),
                    _a,
                    _b,
                    dtypes=_kinds,
                )
            for _trans in (0, 1, 2):
                case(
                    f"lu_solve {_trans} {_a.dtype}",
                    _lu(_trans),
                    _a + np.triu(_a, 1),
                    _b,
                    dtypes=_kinds,
                )
    for _set in ({"overwrite_b": True}, {"check_finite": False}):
        case(f"cho_solve {_set}", _cho(True, **_set), _a, real(_n), dtypes=_kinds)
        case(f"lu_solve {_set}", _lu(0, **_set), _a, real(_n), dtypes=_kinds)
    _batch = np.stack([_a, 2 * _a])
    case("cho_solve, batch", _cho(True), _batch, real(2, _n, 3), dtypes=_kinds)
    case("cho_solve, batch", _cho(False), _batch, real(2, _n, 1), dtypes=_kinds)
    case("lu_solve, batch", _lu(0), _batch, real(2, _n, 3), dtypes=_kinds)
    case("lu_solve, batch", _lu(1), _batch, real(2, _n, 1), dtypes=_kinds)
    case("cho_solve, b broadcast", _cho(True), _batch, real(_n, 3), dtypes=_kinds)
    case("cho_solve, a broadcast", _cho(True), _a, real(2, _n, 3), dtypes=_kinds)
    case("lu_solve, b broadcast", _lu(2), _batch, real(_n, 3), dtypes=_kinds)
    case("lu_solve, a broadcast", _lu(0), _a, real(2, _n, 3), dtypes=_kinds)
    case("lu_solve, vector of a batch", _lu(0), _batch, real(_n), dtypes=_kinds)
    case("cho_solve, vector of a batch", _cho(True), _batch, real(_n), dtypes=_kinds)
case("cho_solve, empty", _cho(True), np.zeros((0, 0)), np.zeros(0))
case("lu_solve, empty", _lu(0), np.zeros((0, 0)), np.zeros((0, 2)))
case("lu_solve, swapped", _lu(0), np.eye(4)[[2, 0, 3, 1]], real(4))
case("lu_factor of one", lambda s, a: s.linalg.lu_factor(a), np.array([[2.0]]))
case("lu_factor, wide", lambda s, a: s.linalg.lu_factor(a), real(2, 4))
case("lu_factor, tall", lambda s, a: s.linalg.lu_factor(a), real(4, 2))


def _bessel(v: int) -> Callable[..., Any]:
    def run(s: Any, z: Any) -> Any:
        if s is fxflow.scipy:
            return s.special.bessel_jn(z, v=v, n_iter=200)
        return np.stack([s.special.jv(k, z) for k in range(v + 1)])

    return run


_points = np.array([0, 1e-30, 1e-5, 0.1, 1, 2.5, 7, 24, 26, 80, -0.3, -30, NAN])
for _v in (0, 1, 2, 5, 20):
    case(f"bessel_jn {_v}", _bessel(_v), _points, near=1e-8)
    case(f"bessel_jn {_v}", _bessel(_v), np.array(2.5), near=1e-8)
    case(f"bessel_jn {_v}", _bessel(_v), np.zeros((2, 0)))
    case(f"bessel_jn {_v}", _bessel(_v), positive(2, 3), near=1e-8)


# -- the comparison --------------------------------------------------------------------


def _moved(x: np.ndarray, dtype: str) -> np.ndarray:
    if x.dtype.kind != "f" and x.dtype.kind != "c":
        return x
    width = {"float64": "complex128", "float32": "complex64"}
    return x.astype(width[dtype] if x.dtype.kind == "c" else dtype)


def leaves(result: Any) -> list[np.ndarray]:
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def fault(c: Case, dtype: str, compiled: bool = False) -> str | None:
    """What is wrong with a case in a dtype, in words, or None."""
    arrays = [_moved(a, dtype) for a in c.arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Both from the same numbers, SciPy in 64 bits.
        try:
            right = leaves(c.run(scipy, *[_moved(a, "float64") for a in arrays]))
        except Exception as e:
            return f"SciPy: {type(e).__name__}: {str(e)[:200]}"
        try:
            run = lambda *arrays: c.run(fxflow.scipy, *arrays)
            left = leaves((jit(run) if compiled else run)(*map(fnp.asarray, arrays)))
        except Exception as e:
            return f"ours: {type(e).__name__}: {str(e)[:300]}"
    near = max(c.near, NEAR[dtype])
    for x, y in zip(left, right, strict=True):
        if x.shape != y.shape:
            return f"shape {x.shape}, SciPy's {y.shape}"
        whole = any(a.dtype.kind == "i" for a in arrays)
        if x.dtype.kind == "f" and arrays and not whole and x.dtype != dtype:
            return f"dtype {x.dtype}"
        far = ~np.isclose(x, y, near, near, equal_nan=True)
        if far.any():
            where = tuple(int(i) for i in np.argwhere(far)[0])
            return f"{x[where]} at {list(where)}, SciPy: {y[where]}"
    return None


def told(cases: Sequence[tuple[Case, str]], compiled: bool = False) -> str:
    with config.override(x64=True):
        faults = [(c, dtype, fault(c, dtype, compiled)) for c, dtype in cases]
    return "\n".join(f"{c}, {dtype}: {text}" for c, dtype, text in faults if text)


IN_DTYPES = [(c, dtype) for c in CASES for dtype in c.dtypes]


def test_a_program_gives_what_scipy_gives() -> None:
    faults = told(sample(IN_DTYPES, 400, of="scipy objects"))
    assert not faults, faults


def test_a_compiled_program_gives_what_scipy_gives() -> None:
    faults = told(sample(IN_DTYPES, 60, of="scipy objects, compiled"), compiled=True)
    assert not faults, faults
