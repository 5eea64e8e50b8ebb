"""`fxflow.scipy` against SciPy, with the arguments that a call seldom has.

Each case is a call of one function with arrays and settings: modes, axes, dtypes, and
empty, 0-d, complex and integer input. Both libraries run it in 64 bits; the shapes,
the dtypes and the values have to agree, at once and, for a share of the cases, under
`jit`.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import config, jit
from tests.sweeps.sampling import sample

pytest.importorskip("scipy")


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of one function, by both libraries.

    Attributes:
      name: of the function in `fxflow.scipy` and in SciPy.
      args: NumPy arrays, traced under `jit`, and others, static.
      settings: keyword arguments, static.
      after: what to compare of a result, where SciPy leaves a choice (such as signs).
      theirs: what SciPy is called with, where its signature differs.
      tolerance: how far the values may be apart.
      compiled: whether `jit` takes the call.
    """

    name: str
    args: tuple[Any, ...]
    settings: dict[str, Any]
    after: Callable[[Any], Any] | None = None
    theirs: Callable[..., Any] | None = None
    tolerance: float = 1e-9
    compiled: bool = True

    def __str__(self) -> str:
        def told(x: Any) -> str:
            return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)

        parts = [told(a) for a in self.args]
        parts += [f"{k}={told(v)}" for k, v in self.settings.items()]
        return f"{self.name}({', '.join(parts)})"


CASES: list[Case] = []
# Settings of the case at hand.
_set: dict[str, Any]
_norm: str | None
_n: Any

_OPTIONS = ("after", "theirs", "tolerance", "compiled")


def case(name: str, *args: Any, **settings: Any) -> None:
    options = {k: settings.pop(k) for k in _OPTIONS if k in settings}
    CASES.append(Case(name, args, settings, **options))


def each(name: str, *args: Any, **choices: Any) -> None:
    """A case for each choice of each setting, the others left out."""
    options = {k: choices.pop(k) for k in _OPTIONS if k in choices}
    for key, values in choices.items():
        for value in values:
            case(name, *args, **{key: value}, **options)


def real(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(repr((shape, len(CASES))).encode()))
    return np.asarray(rng.normal(size=shape))


def complex_(*shape: int) -> np.ndarray:
    return np.asarray(real(*shape) + 1j * real(*shape[::-1]).reshape(shape))


def whole(*shape: int) -> np.ndarray:
    return np.asarray(np.round(3 * real(*shape)), np.int64)


def positive(*shape: int) -> np.ndarray:
    return np.asarray(np.abs(real(*shape)) + 0.3)


def hermitian(a: np.ndarray) -> np.ndarray:
    return np.asarray(a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(a.shape[-1]))


def _sine(function: Any, matrix: Any, _: Any) -> Any:
    return function(matrix, np.sin)


# linalg: square matrices of each kind.
for _a in (real(4, 4), complex_(4, 4), whole(3, 3) + 9 * np.eye(3, dtype=int)):
    for _f in ("expm", "inv", "det"):
        case(f"linalg.{_f}", _a)
    case("linalg.sqrtm", hermitian(_a))
    case(
        "linalg.expm", np.triu(_a), upper_triangular=True, theirs=lambda f, m, **_: f(m)
    )
    case("linalg.expm_frechet", _a, _a[::-1].copy(), tolerance=1e-8)
    case("linalg.expm_frechet", _a, _a, compute_expm=False, tolerance=1e-8)
    case("linalg.funm", hermitian(_a), fnp.sin, theirs=_sine, compiled=False)
    for _lower in (True, False):
        _s = hermitian(_a)
        case("linalg.cholesky", _s, lower=_lower)
        case("linalg.eigh", _s, lower=_lower, eigvals_only=True)
        case("linalg.eigh", _s, _s + np.eye(len(_s)), lower=_lower, eigvals_only=True)
        for _b in (_a[0], _a):
            for _trans in (0, 1, 2, "N", "T", "C"):
                case("linalg.solve_triangular", _s, _b, trans=_trans, lower=_lower)
            case("linalg.solve_triangular", _s, _b, unit_diagonal=True, lower=_lower)
            for _kind in ("gen", "sym", "her", "pos"):
                if _kind == "sym" and np.iscomplexobj(_s):
                    continue
                case("linalg.solve", _s, _b, assume_a=_kind, lower=_lower)
            case("linalg.solve", _a, _b, transposed=not np.iscomplexobj(_a))
    each("linalg.lu", _a, permute_l=[True, False])
    each("linalg.lu", _a[:2], permute_l=[True, False])
    each("linalg.svd", _a[:2], full_matrices=[True, False], after=lambda r: r[1])
    case("linalg.svd", _a, compute_uv=False)
    each("linalg.qr", _a, mode=["full", "r", "economic"])
    each("linalg.qr", _a[:, :2], mode=["full", "r", "economic"])
    each("linalg.qr", _a[:2], mode=["full", "r", "economic"])
    case("linalg.qr", _a, pivoting=True)
    case("linalg.qr", _a[:, :2], pivoting=True, mode="economic")
    for _mode in ("left", "right"):
        case("linalg.qr_multiply", _a, _a, mode=_mode)
        case("linalg.qr_multiply", _a, _a[0], mode=_mode)
        case("linalg.qr_multiply", _a, _a, mode=_mode, conjugate=True)
    each("linalg.hessenberg", _a, calc_q=[True, False])
    for _output in ("real", "complex"):
        case(
            "linalg.schur",
            _a,
            output=_output,
            after=lambda r: np.asarray(r[1]) @ np.asarray(r[0]) @ np.conj(r[1]).T,
        )
    each("linalg.polar", _a, side=["left", "right"])
    case("linalg.polar", _a[:2], method="svd", theirs=lambda f, m, **_: f(m))
    case("linalg.solve_sylvester", _a, hermitian(_a)[:2, :2], _a[:, :2], tolerance=1e-7)
    each("linalg.norm", _a, ord=[None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
    each("linalg.norm", _a[0], ord=[None, 0, 1, -1, 2, 3.5, np.inf, -np.inf])
    each("linalg.norm", _a, axis=[0, 1, -1, (0, 1), (1, 0)])
    case("linalg.norm", _a, 1, axis=0, keepdims=True)
    for _f in ("toeplitz", "hankel"):
        case(f"linalg.{_f}", _a[0])
        case(f"linalg.{_f}", _a[0], _a[1, :2])
    for _f in ("circulant", "companion", "fiedler", "fiedler_companion"):
        if not (_f == "fiedler" and np.iscomplexobj(_a)):
            case(f"linalg.{_f}", _a[0])
    case("linalg.leslie", _a[0], _a[1, 1:])
    each("linalg.convolution_matrix", _a[0], 5, mode=["full", "same", "valid"])
    each("linalg.convolution_matrix", _a[0], 2, mode=["full", "same", "valid"])
    case("linalg.block_diag", _a, _a[0], np.ones((0, 2)), _a[0, 0])
    for _f in ("expm", "inv", "det", "sqrtm", "cholesky"):
        case(f"linalg.{_f}", hermitian(_a)[:1, :1])
        case(f"linalg.{_f}", np.zeros((0, 0), _a.dtype))
        case(f"linalg.{_f}", np.stack([hermitian(_a)] * 2))
    case("linalg.svd", np.zeros((0, 3), _a.dtype))
    case("linalg.qr", np.zeros((3, 0), _a.dtype))
    case("linalg.lu", np.zeros((0, 0), _a.dtype))
    case("linalg.solve", np.zeros((0, 0), _a.dtype), np.zeros(0, _a.dtype))
    case("linalg.block_diag")
case("linalg.funm", hermitian(real(3, 3)), fnp.sin, theirs=_sine, compiled=False)
for _n in (1, 2, 4, 5):
    for _f in ("hilbert", "invhilbert", "hadamard", "helmert", "pascal", "invpascal"):
        if not (_f == "hadamard" and _n == 5) and not (_f == "helmert" and _n == 1):
            case(f"linalg.{_f}", _n)
    each("linalg.dft", _n, scale=[None, "sqrtn", "n"])
each("linalg.pascal", 4, kind=["symmetric", "upper", "lower"])
each("linalg.invpascal", 4, kind=["symmetric", "upper", "lower"])
case("linalg.helmert", 4, full=True)
each("linalg.hadamard", 4, dtype=[int, np.float32, complex, np.int8])
each("linalg.eigh_tridiagonal", real(5), real(4), eigvals_only=[True])
case(
    "linalg.eigh_tridiagonal",
    real(5),
    real(4),
    eigvals_only=True,
    select="i",
    select_range=(1, 3),
)
case("linalg.eigh", hermitian(real(5, 5)), eigvals_only=True, subset_by_index=(1, 3))
each("linalg.eigh", hermitian(real(3, 3)), np.eye(3) * 2, type=[1, 2, 3])

# fft
for _x in (real(5), real(3, 4, 2), whole(3, 4), real(1), complex_(4, 3)):
    for _f in ("fft.dct", "fft.idct"):
        for _type in (1, 2, 3, 4):
            if _type == 1 and _x.size == 1:
                continue
            each(_f, _x, type=[_type])
            for _norm in ("backward", "ortho", "forward"):
                case(_f, _x, type=_type, norm=_norm)
                case(_f, _x, type=_type, n=3, norm=_norm)
                case(_f, _x, type=_type, n=7, axis=0, norm=_norm)
    for _f in ("fft.dctn", "fft.idctn"):
        for _type in (2, 3):
            for _norm in (None, "ortho", "forward"):
                case(_f, _x, type=_type, norm=_norm)
            case(_f, _x, type=_type, axes=(0,))
            case(_f, _x, type=_type, axes=(-1,), s=(6,))
            case(_f, _x, type=_type, s=(2,) * _x.ndim)
            case(_f, _x, type=_type, s=6)
            case(_f, _x, type=_type, s=3, axes=0)
            case(_f, _x, type=_type, s=-1, axes=-1)
            case(_f, _x, type=_type, s=[-1] * (_x.ndim - 1) + [2])
            case(_f, _x, type=_type, axes=0, norm="ortho")
            case(_f, _x, type=_type, axes=np.int64(0))

# signal
_PAIRS = [
    (real(7), real(3)),
    (real(3), real(7)),
    (whole(7), whole(4)),
    (complex_(6), complex_(3)),
    (real(5), complex_(2)),
    (whole(5), real(2)),
    (real(1), real(1)),
    (np.array(2.0), np.array(3.0)),
    (whole(6).astype(np.int32), whole(2).astype(np.int8)),
    (whole(6) > 0, whole(2)),
    (real(5, 4), real(2, 3)),
    (real(2, 3), real(5, 4)),
    (complex_(5, 4), complex_(2, 3)),
]
for _x, _y in _PAIRS:
    for _mode in ("full", "same", "valid"):
        for _f in ("convolve", "correlate"):
            for _method in ("auto", "direct", "fft"):
                case(f"signal.{_f}", _x, _y, mode=_mode, method=_method)
        case("signal.fftconvolve", _x, _y, mode=_mode)
        if _x.ndim == 2:
            for _f in ("convolve2d", "correlate2d"):
                for _how in ("fill", "wrap", "symm"):
                    case(f"signal.{_f}", _x, _y, mode=_mode, boundary=_how)
                case(f"signal.{_f}", _x, _y, mode=_mode, fillvalue=1.5)
for _mode in ("full", "same", "valid"):
    case("signal.fftconvolve", real(3, 6), real(3, 2), mode=_mode, axes=1)
    case("signal.fftconvolve", real(3, 6), real(1, 2), mode=_mode, axes=(-1,))
    case("signal.fftconvolve", real(6, 3), real(2, 1), mode=_mode, axes=[0])
for _x in (real(12), whole(12), real(3, 12), complex_(2, 12)):
    each("signal.detrend", _x, type=["linear", "constant"])
    each("signal.detrend", _x, bp=[5, [3, 7]])
    case("signal.detrend", _x, axis=0, type="constant")
case("signal.detrend", real(12, 2), axis=0, bp=[4])

_SPECTRA: dict[str, list[Any]] = {
    "fs": [2.5],
    "window": ["boxcar", "hamming", ("tukey", 0.3), ("kaiser", 4.0)],
    "nperseg": [7, 1, 100],
    "detrend": [False, "constant", "linear"],
    "return_onesided": [True, False],
}
for _x in (real(40), whole(40), complex_(40), real(2, 40)):
    _one = {"return_onesided": False} if np.iscomplexobj(_x) else {}
    for _f, _data in (("stft", (_x,)), ("welch", (_x,)), ("csd", (_x, _x[..., ::-1]))):
        for _key, _values in _SPECTRA.items():
            for _value in _values:
                if _one and _value is True:
                    continue
                _more = {} if _key in ("window", "nperseg") else {"nperseg": 8}
                case(f"signal.{_f}", *_data, **{**_one, **_more, _key: _value})
        _window = np.arange(1.0, 9)
        case(f"signal.{_f}", *_data, nperseg=8, window=_window, **_one)
        case(f"signal.{_f}", *_data, nperseg=8, noverlap=3, **_one)
        case(f"signal.{_f}", *_data, nperseg=8, noverlap=0, nfft=16, **_one)
        case(f"signal.{_f}", *_data, nperseg=7, nfft=9, **_one)
        _turned = tuple(np.moveaxis(d, -1, 0) for d in _data)
        case(f"signal.{_f}", *_turned, nperseg=8, axis=0, **_one)
        _scalings = ["spectrum", "psd" if _f == "stft" else "density"]
        for _scaling in _scalings:
            case(f"signal.{_f}", *_data, nperseg=8, scaling=_scaling, **_one)
        if _f != "stft":
            each(f"signal.{_f}", *_data, average=["mean", "median"])
            case(f"signal.{_f}", *_data, nperseg=8, average="median", **_one)
    for _boundary in ("zeros", "even", "odd", "constant", None):
        for _padded in (True, False):
            _set = {"boundary": _boundary, "padded": _padded, "nperseg": 7, **_one}
            case("signal.stft", _x, **_set)
case("signal.csd", real(40), real(30), nperseg=8)
case("signal.csd", real(1, 40), real(3, 40), nperseg=8)
case("signal.csd", real(40), complex_(40), nperseg=8, return_onesided=False)
for _f in ("stft", "welch"):
    case(f"signal.{_f}", real(0))
case("signal.welch", real(1))


def _signal(result: Any) -> Any:
    # The times are those of another axis in SciPy, if there are several signals.
    return result[1]


for _z in (complex_(5, 6), complex_(2, 5, 6)):
    case("signal.istft", _z, after=_signal)
    case("signal.istft", _z, after=_signal, nperseg=8, noverlap=6)
    case("signal.istft", _z, after=_signal, nperseg=6, nfft=8)
    case("signal.istft", _z, after=_signal, window="hamming", boundary=False)
    case("signal.istft", _z, after=_signal, input_onesided=False, nperseg=5, noverlap=3)
    case("signal.istft", _z, after=_signal, scaling="psd", fs=2.0)
    case(
        "signal.istft",
        np.swapaxes(_z, -1, -2),
        after=_signal,
        time_axis=-2,
        freq_axis=-1,
    )


# ndimage, integrate
def _grid(function: Any, x: Any, at: Any, mode: str = "constant", **rest: Any) -> Any:
    # "constant" and "wrap" are SciPy's grid-constant and grid-wrap.
    return function(
        x,
        at,
        mode={"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode),
        **rest,
    )


_at = np.array([[-2.5, -1.0, -0.5, 0, 0.25, 1.5, 2, 2.5, 3, 3.4, 4.2, 9]])
for _x in (real(4), whole(4), complex_(4), real(1)):
    for _order in (0, 1):
        for _mode in ("constant", "nearest", "mirror", "reflect", "wrap"):
            _set = {"order": _order, "mode": _mode}
            case("ndimage.map_coordinates", _x, _at, **_set, theirs=_grid)
        _set = {"order": _order, "cval": 2.5}
        case("ndimage.map_coordinates", _x, _at, **_set, theirs=_grid)
        case("ndimage.map_coordinates", _x, np.zeros((1, 0)), **_set, theirs=_grid)
_set = {"order": 1, "theirs": _grid}
case("ndimage.map_coordinates", real(4, 5), 4 * positive(2, 3, 2), **_set)
case("ndimage.map_coordinates", real(4, 5), whole(2, 3), **_set)
for _y in (real(5), whole(4, 5), complex_(5), real(1), real(0)):
    each("integrate.trapezoid", _y, dx=[1.0, 0.5, 2])
    case("integrate.trapezoid", _y, axis=0)
    if _y.shape[-1] == 5:
        case("integrate.trapezoid", _y, np.sort(real(5)))
        case("integrate.trapezoid", _y, whole(5))
case("integrate.trapezoid", real(4, 5), real(4), axis=0)
case("integrate.trapezoid", real(4, 5), real(4, 5), axis=0)

# stats
for _x in (whole(8), whole(3, 6), real(4, 2), real(1), real(0)):
    for _method in ("average", "min", "max", "dense", "ordinal"):
        for _axis in (None, 0, -1):
            case("stats.rankdata", _x, _method, axis=_axis)
    for _axis in (None, 0, -1):
        if _x.size:
            case("stats.mode", _x, axis=_axis)
            case("stats.mode", _x, axis=_axis, keepdims=True)
        if _x.size > 1:
            case("stats.sem", _x, axis=_axis)
            case("stats.sem", _x, axis=_axis, ddof=0)
            case("stats.sem", _x, axis=_axis, keepdims=True)
_gaps = np.where(real(4, 5) > 0.8, np.nan, np.round(real(4, 5)))
for _axis in (None, 0, 1):
    for _f in ("rankdata", "mode", "sem"):
        case(f"stats.{_f}", _gaps, axis=_axis, nan_policy="propagate")
    case("stats.sem", _gaps, axis=_axis, nan_policy="omit")
_POINTS = np.array([-1.5, -1, 0, 1e-3, 0.3, 0.5, 1, 1.7, 2, 3, 7.5, np.inf, np.nan])
_WHOLE = np.array([-1, 0, 1, 2, 3, 5, 9])
_WITH_POINTS = ("pdf", "logpdf", "cdf", "sf", "ppf", "isf")
_CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    "beta": [(2.0, 3.0), (1.0, 1.0), (0.5, 0.5), (1.0, 2.0)],
    "cauchy": [()],
    "chi2": [(3.0,), (2.0,), (1.0,)],
    "expon": [()],
    "gamma": [(2.5,), (1.0,), (0.5,)],
    "gennorm": [(1.5,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "laplace": [()],
    "logistic": [()],
    "norm": [()],
    "pareto": [(2.5,)],
    "t": [(3.0,), (1.0,)],
    "truncnorm": [(-1.0, 2.0), (3.0, 5.0)],
    "uniform": [()],
    "vonmises": [(1.5,)],
    "wrapcauchy": [(0.4,)],
}
for _name, _shapes in _CONTINUOUS.items():
    _ours = importlib.import_module(f"fxflow.scipy.stats.{_name}")
    for _f in _WITH_POINTS:
        _takes = np.array([-0.1, 0, 0.2, 0.5, 0.9, 1, 1.1, np.nan])
        _points = _takes if _f in ("ppf", "isf") else _POINTS
        if _name in ("chi2", "gamma", "gumbel_l") and "pdf" in _f:
            _points = _POINTS[~np.isposinf(_POINTS)]  # there SciPy gives nan, not 0
        for _shape in _shapes:
            if _f == "entropy":
                case(f"stats.{_name}.{_f}", *map(np.array, _shape))
                continue
            case(f"stats.{_name}.{_f}", _points, *_shape)
            if _name not in ("gennorm", "vonmises", "wrapcauchy"):
                case(f"stats.{_name}.{_f}", _points, *_shape, loc=0.5, scale=2)
                case(f"stats.{_name}.{_f}", _points, *_shape, np.array([[0.5], [-1]]))
            case(f"stats.{_name}.{_f}", _WHOLE, *_shape)
            case(f"stats.{_name}.{_f}", np.zeros((0, 2)), *_shape)
_DISCRETE: dict[str, list[tuple[float, ...]]] = {
    "bernoulli": [(0.3,), (0.0,), (1.0,)],
    "betabinom": [(5, 2.0, 3.0), (0, 2.0, 3.0), (1, 1.0, 1.0)],
    "binom": [(5, 0.3), (0, 0.3), (5, 0.0), (5, 1.0)],
    "geom": [(0.3,), (1.0,)],
    "nbinom": [(3, 0.4), (2.5, 1.0)],
    "poisson": [(2.5,), (0.0,)],
}
for _name, _shapes in _DISCRETE.items():
    _ours = importlib.import_module(f"fxflow.scipy.stats.{_name}")
    for _f in ("pmf", "logpmf", "cdf", "ppf"):
        for _shape in _shapes:
            if _f == "entropy":
                case(f"stats.{_name}.{_f}", *map(np.array, _shape))
                continue
            # SciPy's quantiles of 0 and 1 are -1 and 1, whatever the probability.
            if (_name, _f, _shape) == ("bernoulli", "ppf", (0.0,)):
                continue
            _takes = np.array([0.2, 0.5, 0.9, 1, 1.1, np.nan])
            _points = _takes if _f == "ppf" else _WHOLE
            case(f"stats.{_name}.{_f}", _points, *_shape)
            if _name != "bernoulli" or _f in ("pmf", "logpmf"):
                case(f"stats.{_name}.{_f}", _points, *_shape, loc=1)
            case(f"stats.{_name}.{_f}", np.zeros(0), *_shape)
            if _f != "ppf":
                case(f"stats.{_name}.{_f}", np.array([0, 0.5, 2, np.nan]), *_shape)
_cov = hermitian(real(3, 3))
for _f in ("logpdf", "pdf"):
    case(f"stats.multivariate_normal.{_f}", real(4, 3), real(3), _cov)
    case(f"stats.multivariate_normal.{_f}", real(2, 4, 3), real(3), _cov)
    case(f"stats.multivariate_normal.{_f}", real(3), real(3), _cov)
    case(f"stats.multivariate_normal.{_f}", np.array(0.5), np.array(0.2), np.array(2.0))
    _p = np.array([[0.2, 0.5], [0.3, 0.25], [0.5, 0.25]])
    case(f"stats.dirichlet.{_f}", _p, np.array([1.5, 2.0, 0.7]))
    case(f"stats.dirichlet.{_f}", _p[:, 0], np.array([1, 1, 1]))
    case(f"stats.dirichlet.{_f}", _p[:2, 0], np.array([1.5, 2.0, 0.7]))
for _f in ("logpmf", "pmf"):
    _n = np.array([2, 1, 3])
    case(f"stats.multinomial.{_f}", _n, np.array(6), np.array([0.2, 0.3, 0.5]))
    case(f"stats.multinomial.{_f}", _n, np.array(5), np.array([0.2, 0.3, 0.5]))
    case(f"stats.multinomial.{_f}", 0 * _n, np.array(0), np.array([0.2, 0.3, 0.5]))

# special
for _f in [
    "digamma",
    "psi",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "gamma",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "loggamma",
    "logit",
    "ndtr",
    "ndtri",
    "spence",
    "dawsn",
    "log_expit",
    "factorial",
    "fresnel",
    "sici",
    "wofz",
    "softmax",
    "log_softmax",
    "logsumexp",
]:
    case(f"special.{_f}", _POINTS[:-2])
    case(f"special.{_f}", np.array([1, 2, 5]))
    case(f"special.{_f}", np.array(0.5))
    case(f"special.{_f}", np.ones((2, 1)))
    if "soft" not in _f and _f != "logsumexp":
        case(f"special.{_f}", np.zeros((2, 0)))
for _f in ("softmax", "log_softmax", "logsumexp"):
    each(f"special.{_f}", real(3, 4), axis=[None, 0, 1, -1, (0, 1)])
    case(f"special.{_f}", whole(3, 4), axis=1)
for _a in (real(3, 4), whole(3, 4)):
    for _set in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        case("special.logsumexp", _a, b=real(3, 4), return_sign=True, **_set)
        case("special.logsumexp", _a, b=positive(4), **_set)
        case("special.logsumexp", _a, return_sign=True, **_set)
case("special.logsumexp", complex_(3, 4), axis=0)
case("special.logsumexp", np.array([-np.inf, -np.inf]))
for _f in [
    "beta",
    "betaln",
    "xlogy",
    "xlog1py",
    "kl_div",
    "rel_entr",
    "gammainc",
    "gammaincc",
    "poch",
]:
    case(f"special.{_f}", np.array([[0.0], [0.5], [2]]), np.array([0.25, 1, 3]))
    case(f"special.{_f}", np.array([[1], [2]]), np.array([1, 3]))
for _f in ("boxcox", "boxcox1p"):
    case(f"special.{_f}", positive(3, 1), np.array([0.0, 1, -1, 2.5, 1e-4]))
each("special.comb", np.array([5, 4, 0, 3]), np.array([2, 5, 0, -1]), repetition=[0, 1])
each("special.sph_harm_y", np.array([0, 2, 3]), np.array([0, -1, 3]), 0.4, 1.2)
case("special.sph_harm_y", np.array([0, 2, 3]), np.array([0, -1, 3]), 0.4, 1.2)
case("special.betainc", positive(3, 1), positive(2), np.array(0.3))
case("special.hyp1f1", np.array([1.0, 0.5]), np.array([2.0, 3]), np.array([0.5, -3]))
case("special.hyp2f1", np.array(1.0), np.array(0.5), np.array(2.0), np.array([0.5, -3]))
case("special.expn", np.array([[0], [1], [4]]), np.array([0.5, 2.0, 9]))
case("special.polygamma", np.array([[0], [1], [4]]), np.array([0.5, 2.0, 9]))
case("special.zeta", np.array([2, 3.5]), np.array([[1.0], [0.5]]))
case("special.zeta", np.array([2, 3, 1.5, 40]))
case("special.multigammaln", np.array([3.0, 4]), 2)
case("special.owens_t", real(3, 1), real(4))
case("special.bernoulli", 7)

# cluster
case("cluster.vq.vq", real(6, 2), real(3, 2))
case("cluster.vq.vq", real(6), real(3))
case("cluster.vq.vq", whole(6, 2), whole(3, 2))


def from_(library: str, name: str) -> Any:
    """A function of `fxflow.scipy` or of SciPy."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join([library, *parts[:count]]))
        except ModuleNotFoundError:
            continue
        return operator.attrgetter(".".join(parts[count:]))(module)
    raise AssertionError(f"{name}: not a function of {library}")


def leaves(result: Any) -> list[np.ndarray]:
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [np.asarray(result)]


def ours_of(c: Case, compiled: bool) -> Any:
    function = from_("fxflow.scipy", c.name)
    if not compiled:
        return function(*c.args, **c.settings)
    traced = [i for i, a in enumerate(c.args) if isinstance(a, np.ndarray)]

    def called(arrays: list[Any]) -> Any:
        args = list(c.args)
        for i, a in zip(traced, arrays, strict=True):
            args[i] = a
        return function(*args, **c.settings)

    return jit(called)([c.args[i] for i in traced])


_ALWAYS = "complex always: the values do not decide on the dtype"
_COMPUTED = "floats of the operands' size, so that products of integers do not overflow"
_TABLE = "an array for computing with, of the default float"
#: Dtypes that are not SciPy's, by the function: ours, those of SciPy, and the reason.
OWN_DTYPE: dict[str, tuple[dict[str, str], str]] = {
    "cluster.vq.vq": ({"int32": "int64"}, "indices are int32, for integers too"),
    "linalg.funm": ({"complex128": "float64"}, _ALWAYS),
    "linalg.invpascal": ({"float64": "int64"}, _TABLE),
    "linalg.pascal": ({"float64": "uint64"}, _TABLE),
    "linalg.qr": ({"float64": "int64"}, "of empty integers a float, as of others"),
    "linalg.sqrtm": ({"complex128": "float64"}, _ALWAYS),
    "signal.convolve": ({"float64": "int64", "float32": "int32"}, _COMPUTED),
    "signal.correlate": ({"float64": "int64", "float32": "int32"}, _COMPUTED),
    "signal.fftconvolve": ({"float32": "float64"}, _COMPUTED),
    "stats.rankdata": ({"float64": "int64"}, "floats for all methods, which nan needs"),
}


def fault(c: Case, compiled: bool = False) -> str | None:
    """What is wrong with a case, in words, or None."""
    function = from_("scipy", c.name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if c.theirs is not None:
                theirs = c.theirs(function, *c.args, **c.settings)
            else:
                theirs = function(*c.args, **c.settings)
        except Exception as e:
            return f"SciPy: {type(e).__name__}: {str(e)[:150]}"
        try:
            ours = ours_of(c, compiled)
        except Exception as e:
            return f"ours: {type(e).__name__}: {str(e)[:250]}"
        if c.after is not None:
            ours, theirs = c.after(ours), c.after(theirs)
    left, right = leaves(ours), leaves(theirs)
    if len(left) != len(right):
        return f"{len(left)} results, SciPy gives {len(right)}"
    for x, y in zip(left, right, strict=True):
        if x.shape != y.shape:
            return f"shape {x.shape}, SciPy's {y.shape}"
        own = OWN_DTYPE.get(c.name, ({}, ""))[0]
        if x.dtype != y.dtype and own.get(x.dtype.name) != y.dtype.name:
            return f"dtype {x.dtype}, SciPy's {y.dtype}"
        near = 1e-5 if x.dtype in (np.float32, np.complex64) else c.tolerance
        far = ~np.isclose(x, y, near, near, equal_nan=True)
        if far.any():
            where = tuple(int(i) for i in np.argwhere(far)[0])
            return f"{x[where]} at {list(where)}, SciPy: {y[where]}"
    return None


def told(cases: list[Case], compiled: bool = False) -> str:
    with config.override(x64=True):
        faults = [(c, fault(c, compiled)) for c in cases]
    return "\n".join(f"{c}: {text}" for c, text in faults if text)


def test_a_call_gives_what_scipy_gives() -> None:
    faults = told(sample(CASES, 300, of="scipy arguments"))
    assert not faults, faults


def test_a_compiled_call_gives_what_scipy_gives() -> None:
    cases = [c for c in CASES if c.compiled]
    faults = told(sample(cases, 60, of="scipy arguments, compiled"), compiled=True)
    assert not faults, faults
