"""Empty, 0-d and size-1 arrays and axes, through every public function.

Each call of the catalogue is made with arrays some of whose axes have length 0 or 1, or
that have no axes at all. It has to give what NumPy or SciPy gives, or to refuse with an
error of our own where NumPy refuses; and the same under `jit`. Derivatives and `vmap`
of it have to work, also a `vmap` over nothing.
"""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import tree
from fxflow.errors import NotDifferentiableError
from tests.sweeps.catalogue import Call, Operand, catalogue, kind_of
from tests.sweeps.results import Refused, alike, attempt
from tests.sweeps.sampling import sample

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A call with other shapes than the ordinary ones."""

    call: Call
    shapes: tuple[Shape, ...]

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, s)) or "()" for s in self.shapes)
        return f"{self.call}-{shapes}"

    def draw(self) -> list[Any]:
        rng = self.call.rng()
        pairs = zip(self.call.operands, self.shapes, strict=True)
        return [_drawn(operand, shape, rng) for operand, shape in pairs]


def _drawn(operand: Operand, shape: Shape, rng: np.random.Generator) -> Any:
    """Returns an array for an operand, of a shape that it need not be made for."""
    try:
        made = replace(operand, shape=shape).draw(rng)
    except (ValueError, IndexError, TypeError):
        made = None
    if made is None or made.shape != shape:
        return np.zeros(shape, operand.draw(rng).dtype)
    return made


def _changed(shapes: tuple[Shape, ...]) -> Iterator[tuple[Shape, ...]]:
    """Returns shapes with axes of length 0 and 1, and without axes."""
    for new in (0, 1):
        # Axes of one length mostly have to have one length.
        for length in sorted({n for shape in shapes for n in shape}):
            yield tuple(
                tuple(new if n == length else n for n in shape) for shape in shapes
            )
        for i, shape in enumerate(shapes):
            for axis in range(len(shape)):
                one = (*shape[:axis], new, *shape[axis + 1 :])
                yield (*shapes[:i], one, *shapes[i + 1 :])
        yield tuple((new,) * len(shape) for shape in shapes)
        yield tuple((new,) for _ in shapes)
    yield tuple(() for _ in shapes)
    for i in range(len(shapes)):
        yield (*shapes[:i], (), *shapes[i + 1 :])


def cases() -> list[Case]:
    found = []
    for call in catalogue():
        ordinary = tuple(o.shape for o in call.operands)
        if ordinary:
            new = dict.fromkeys(_changed(ordinary))
            new.pop(ordinary, None)
            found += [Case(call, shapes) for shapes in new]
    return found


def expected(case: Case, arrays: list[Any]) -> Any:
    """Returns what NumPy or SciPy gives, or that it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return case.call.expected(*arrays)
        except Exception as error:
            return Refused(error)


# Where we differ from NumPy or SciPy on purpose (patterns of the cases' names).
EXEMPT = {
    # They refuse, or differ by accident; what we give follows from other cases.
    "numpy.quantile*-[0-9]x0": "nan of nothing, as the median",
    "numpy.quantile-several-0*": "nan of nothing, as the median",
    "numpy.percentile*-[0-9]x0": "nan of nothing, as the median",
    "numpy.average-[0-9]x0-0": "nan where the weights' sum is zero",
    "numpy.apply_along_axis-0x*": "the function's result has a known shape",
    "numpy.correlate*()*": "a number is a sequence of one, as for convolve",
    "numpy.polyval-()-*": "a number is one coefficient",
    "numpy.polyder-()": "a number is one coefficient",
    "numpy.polyint-()": "a number is one coefficient",
    "numpy.poly-()": "a number is one zero",
    "numpy.poly-0": "the result has an axis however many zeros there are",
    "numpy.piecewise-*": "conditions broadcast",
    "numpy.kaiser-1": "beta may be an array of one element",
    "numpy.histogram-1": "the datum lies on an edge, which is rounded otherwise",
    "numpy.histogram-()": "the datum lies on an edge, which is rounded otherwise",
    "numpy.linalg.tensorinv-*": "inf where a matrix is singular; nothing of nothing",
    "numpy.linalg.tensorsolve-*": "inf where a matrix is singular",
    "numpy.fft.fftn-()": "complex, as of other shapes",
    "numpy.fft.ifftn-()": "complex, as of other shapes",
    "numpy.fft.fftshift-()": "a number has nothing to shift",
    "numpy.fft.ifftshift-()": "a number has nothing to shift",
    "scipy.special.*softmax-[0-9]x0": "nothing of nothing",
    "scipy.special.logsumexp-weights-*": "weights broadcast, for no elements too",
    "scipy.fft.hfft[2n]-*1": "SciPy returns numbers that it has not written",
    "scipy.linalg.sqrtm-*": "complex, whatever the values are",
    # They take it; the array API standard and JAX do not.
    "numpy.*-where-()-()": "a number has no axis",
    "numpy.*-axis-()": "a number has no axis",
    "numpy.cumulative_*-()": "a number has no axis",
    "numpy.argsort-()": "a number has no axis",
    "numpy.tri[lu]*-[01]": "a vector is not a matrix",
    "scipy.linalg.expm-*": "a number or vector is not a matrix",
    "scipy.linalg.lu_solve-0*": "pivots are of three rows",
    "scipy.linalg.solve_sylvester-0*": "SciPy takes an empty A of any shape",
    "scipy.linalg.solve_sylvester-3x0-*": "SciPy takes an empty A of any shape",
    "scipy.linalg.solve_sylvester-3x3-0x2-*": "SciPy takes an empty B of any shape",
    "scipy.linalg.solve_sylvester-3x3-2x0-*": "SciPy takes an empty B of any shape",
    # Indices that are out of range give nan, or what `mode` says.
    "numpy.take*": "indices are out of range",
    "scipy.spatial.minkowski_distance*-*()*": "a number is not a vector",
    "scipy.signal.[cq]spline1d-1": "SciPy's coefficient does not give the sample",
    "scipy.ndimage.gaussian_*-()": "a number has no axis to smooth along",
    "scipy.ndimage.center_of_mass-()": "a number has no axis",
    "scipy.ndimage.spline_filter1d-()": "a number has no axis",
    "scipy.signal.medfilt-()": "a number has no axis",
    # SciPy divides by 0, or refuses what has no state.
    "scipy.signal.*filt*-3-()-*": "a first coefficient of 0 is refused",
    "scipy.signal.lfiltic-3-3-*()*": "a number is a sequence of one",
    "scipy.signal.lfilter_zi-1-1": "no state is a state",
    "scipy.signal.lfilter_zi-()-()": "no state is a state",
    "scipy.signal.filtfilt-1-1-*": "no state is a state",
    "scipy.signal.lfiltic-0-*": "no coefficients are refused",
    "scipy.signal.lfilter_zi-0-*": "no coefficients are refused",
}


# What is refused for its values, which a traced call does not know.
BY_VALUE = {
    "scipy.signal.lfil*": "a first coefficient of 0",
    "scipy.signal.filtfilt-*": "a first coefficient of 0",
    "scipy.signal.sosfilt*": "a first coefficient of 0",
    "scipy.signal.deconvolve*": "a first coefficient of 0",
}


# What has a derivative with the ordinary shapes only.
NOT_DIFFERENTIABLE = {
    "lax.linalg.qr-*": "the square Q of a tall matrix is not determined",
}


def is_exempt(case: Case, patterns: dict[str, str]) -> bool:
    return any(fnmatch.fnmatchcase(str(case), pattern) for pattern in patterns)


def check_values(case: Case) -> Any:
    """Asserts that an eager call gives what NumPy gives; returns its result."""
    arrays = case.draw()
    got = attempt(case.call.run, *arrays)
    compared = case.call.oracle is not None and not case.call.random
    if compared and not is_exempt(case, EXEMPT):
        want = expected(case, arrays)
        assert alike(got, want), f"{got} != {want}"
    return got


def check_compiled(case: Case, got: Any) -> None:
    if isinstance(got, Refused) and is_exempt(case, BY_VALUE):
        return
    traced = attempt(fxflow.jit(case.call.run), *case.draw())
    assert alike(traced, got, exact=True), f"jitted {traced} != {got}"


def check_vmap(case: Case, got: Any) -> None:
    if isinstance(got, Refused):
        return
    for size in (0, 2):
        rows = [
            np.stack([a] * size) if size else np.zeros((0, *a.shape), a.dtype)
            for a in case.draw()
        ]
        mapped = fxflow.vmap(case.call.run)(*rows)
        for m, g in zip(tree.leaves(mapped), tree.leaves(got), strict=True):
            g = fnp.asarray(g)
            assert m.shape == (size, *g.shape) and m.dtype == g.dtype
            if not case.call.random:
                assert all(alike(m[i], g) for i in range(size)), f"{m} != {g}"


def check_derivatives(case: Case, got: Any) -> None:
    if isinstance(got, Refused):
        return
    arrays = case.draw()
    places = tuple(i for i, a in enumerate(arrays) if kind_of(a.dtype) in "fc")
    if not places or not any(kind_of(r.dtype) in "fc" for r in tree.leaves(got)):
        return

    def total(*arrays: Any) -> Any:
        leaves = tree.leaves(case.call.run(*arrays))
        return sum(fnp.sum(fnp.real(r)) for r in leaves if kind_of(r.dtype) in "fc")

    try:
        slopes = fxflow.grad(total, places)(*arrays)
    except NotDifferentiableError:
        if is_exempt(case, NOT_DIFFERENTIABLE):
            return
        # Then it has no derivative with ordinary arrays either.
        with pytest.raises(NotDifferentiableError):
            fxflow.grad(total, places)(*case.call.draw())
        return
    for place, slope in zip(places, slopes, strict=True):
        assert slope.shape == arrays[place].shape
        assert slope.dtype == arrays[place].dtype
    tangents = [np.ones_like(arrays[p]) for p in places]

    def of_floats(*floats: Any) -> Any:
        given = list(arrays)
        for place, value in zip(places, floats, strict=True):
            given[place] = value
        return total(*given)

    out, slope = fxflow.jvp(of_floats, [arrays[p] for p in places], tangents)
    assert slope.shape == out.shape == ()


def check(case: Case) -> None:
    got = check_values(case)
    arrays = all(hasattr(leaf, "dtype") for leaf in tree.leaves(got))
    if not case.call.traceable or not (arrays or isinstance(got, Refused)):
        return
    check_compiled(case, got)
    check_vmap(case, got)
    if case.call.differentiable and not case.call.random:
        check_derivatives(case, got)


# The whole sweep gives one function more shapes than it warns at.
@pytest.mark.filterwarnings("ignore::fxflow.errors.RetraceWarning")
@pytest.mark.parametrize("case", sample(cases(), 160, of="empty"), ids=str)
def test_empty(case: Case) -> None:
    check(case)
