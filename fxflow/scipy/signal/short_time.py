"""Short-time Fourier transforms as an object: slices, their grid, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, integer, natural, number
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.signal._recursions import known
from fxflow.scipy.signal._slices import canonical_dual, overlapped, scale_factor
from fxflow.scipy.signal._windows import window_of
from fxflow.scipy.signal.trends import detrend

_NAME = "ShortTimeFFT"
_MODES = ("twosided", "centered", "onesided", "onesided2X")
_SCALINGS = (None, "magnitude", "psd")
_PADDINGS: dict[str, dict[str, Any]] = {
    "zeros": {"mode": "constant"},
    "edge": {"mode": "edge"},
    "even": {"mode": "reflect", "reflect_type": "even"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
}


class _Plan(NamedTuple):
    """What is known of a transform before any array.

    Attributes:
      hop: samples between slices.
      fs: the sampling rate.
      fft_mode: which frequencies there are.
      mfft: the length of a transform.
      scaling: of the window.
      phase_shift: of a slice, or None.
      first: the first sample of the window that is not 0.
      last: the last one.
    """

    hop: int
    fs: float
    fft_mode: str
    mfft: int
    scaling: str | None
    phase_shift: int | None
    first: int
    last: int


def _one_of(what: str, value: Any, known_: tuple[Any, ...]) -> Any:
    if value not in known_:
        listed = ", ".join(map(repr, known_))
        raise ArgumentError(f"{_NAME}: {what} must be one of {listed}, got {value!r}")
    return value


_docs_of_options = shared("""
    Args:
      fs: the sampling rate.
      fft_mode: see the class.
      mfft: see the class.
      scale_to: see the class.
      phase_shift: see the class.
""")
_docs_of_slices = shared("""
    Args:
      x: array-like[...]: the signal.
      p0: the first slice; None is `p_min`.
      p1: the slice after the last; None is `p_max(n)`.
      k_offset: the sample of slice 0.
      padding: see `stft`.
      axis: the axis of time.

    Raises:
      ArgumentError: as `stft`.
      AxisError: an axis is out of range.
""")


@register_pytree_node_class
class ShortTimeFFT:
    """Short-time Fourier transforms with one window, and their inverse.

    Slice p of a signal is centered at sample p · hop; the sample in the middle of the
    window, m_num // 2, lies there. The object is an immutable pytree: it works under
    `jit` and `vmap`, and is differentiable in the window and the signal.

    Args:
      win: float or complex array-like[m]: the window.
      hop: how many samples lie between slices.
      fs: the sampling rate.
      fft_mode: "onesided", non-negative frequencies, of real signals; "onesided2X", the
        same, scaled by `scale_to` for the missing ones; "twosided", all of them;
        "centered", all of them with 0 in the middle.
      mfft: the length of a transform, at least m; None is m.
      dual_win: array-like[m]: the window of the inverse; None is the canonical one.
      scale_to: "magnitude", the peaks of sines are their amplitudes; "psd", squares are
        a power density; None is to leave the window as it is.
      phase_shift: added to the phases as a linear one, in samples; 0 is that of a time
        axis whose zero lies in the middle of each slice; None that at its beginning.

    Attributes:
      win: the window.
      hop: as given.
      fs: as given.
      fft_mode: as given.
      mfft: the length of a transform.
      scaling: None, "magnitude" or "psd".
      phase_shift: as given.

    Raises:
      ArgumentError: an argument is out of range, or the mode does not suit the window.
      ShapeError: a window is not a vector, or the dual one has the wrong length.

    Example:
      >>> transform = ShortTimeFFT.from_window("hann", fs=8.0, nperseg=8, noverlap=4)
      >>> x = np.sin(np.arange(32.0))
      >>> S = transform.stft(x)
      >>> S.shape
      (5, 9)
      >>> bool(fnp.allclose(transform.istft(S, k1=32), x, atol=1e-5))
      True

    Source: `scipy.signal.ShortTimeFFT`; it is immutable, so `scale_to` returns another
    transform.
    """

    win: Array
    _dual: Array | None
    _plan: _Plan

    def __init__(
        self,
        win: ArrayLike,
        hop: int,
        fs: float,
        *,
        fft_mode: str = "onesided",
        mfft: int | None = None,
        dual_win: ArrayLike | None = None,
        scale_to: str | None = None,
        phase_shift: int | None = 0,
    ) -> None:
        (win,) = promote_inexact(_NAME, win)
        if win.ndim != 1 or not win.size:
            raise ShapeError(f"{_NAME}: win must be a vector, got {win.aval}")
        if dual_win is not None:
            dual_win = convert(promote_inexact(_NAME, dual_win)[0], win.dtype)
            if dual_win.shape != win.shape:
                raise ShapeError(
                    f"{_NAME}: dual_win must have the shape of win, {win.shape}, got "
                    f"{dual_win.aval}"
                )
        hop = natural(_NAME, "hop", hop)
        rate = number(_NAME, "fs", fs)
        if not rate > 0:
            raise ArgumentError(f"{_NAME}: fs must be positive, got {rate}")
        size = win.size if mfft is None else natural(_NAME, "mfft", mfft, win.size)
        _one_of("fft_mode", fft_mode, _MODES)
        _one_of("scale_to", scale_to, _SCALINGS)
        if fft_mode.startswith("onesided") and dtypes.is_complex(win.dtype):
            raise ArgumentError(
                f"{_NAME}: fft_mode={fft_mode!r} needs a real window, got {win.aval}: "
                'choose "twosided" or "centered"'
            )
        if fft_mode == "onesided2X" and scale_to is None:
            raise ArgumentError(f'{_NAME}: fft_mode="onesided2X" needs scale_to')
        if phase_shift is not None:
            phase_shift = integer(_NAME, "phase_shift", phase_shift)
            if not -size < phase_shift < size:
                raise ArgumentError(
                    f"{_NAME}: phase_shift must lie between -mfft = {-size} and "
                    f"{size}, got {phase_shift}"
                )
        host = known(win, _NAME)
        some = np.arange(win.size) if host is None else np.flatnonzero(host)
        ends = (int(some[0]), int(some[-1])) if some.size else (0, win.size - 1)
        plan = _Plan(hop, rate, fft_mode, size, None, phase_shift, *ends)
        if scale_to is not None:
            by = scale_factor(win, scale_to, rate)
            win = win * by
            dual_win = None if dual_win is None else dual_win / by
            plan = plan._replace(scaling=scale_to)
        self._set(win, dual_win, plan)

    def _set(self, win: Any, dual: Any, plan: _Plan) -> None:
        object.__setattr__(self, "win", win)
        object.__setattr__(self, "_dual", dual)
        object.__setattr__(self, "_plan", plan)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuses to change the transform."""
        raise AttributeError(
            f"{_NAME}: a transform is immutable: make another one with {name}"
        )

    def __repr__(self) -> str:
        """Returns the parameters."""
        p = self._plan
        return (
            f"{_NAME}(m_num={self.m_num}, hop={p.hop}, fs={p.fs:g}, "
            f"fft_mode={p.fft_mode!r}, mfft={p.mfft}, scaling={p.scaling!r}, "
            f"phase_shift={p.phase_shift})"
        )

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the windows and the static data."""
        return (self.win, self._dual), self._plan

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> ShortTimeFFT:
        """Rebuilds a transform from its parts."""
        out: ShortTimeFFT = object.__new__(cls)
        out._set(children[0], children[1], aux)
        return out

    @classmethod
    @_docs_of_options
    def from_window(
        cls,
        win_param: Any,
        fs: float,
        nperseg: int,
        noverlap: int,
        *,
        symmetric_win: bool = False,
        fft_mode: str = "onesided",
        mfft: int | None = None,
        scale_to: str | None = None,
        phase_shift: int | None = 0,
    ) -> ShortTimeFFT:
        """Returns a transform with a window of a name.

        Args:
          win_param: the name, or a tuple of it and parameters; see `get_window`.
          nperseg: the number of points of the window.
          noverlap: how many samples slices have in common.
          symmetric_win: whether the window is symmetric instead of a period.

        Returns:
          The transform.
        """
        n = natural(_NAME, "nperseg", nperseg)
        hop = n - natural(_NAME, "noverlap", noverlap, 0)
        win = window_of(_NAME, win_param, n, not symmetric_win)
        return cls(
            fnp.asarray(win),
            hop,
            fs,
            fft_mode=fft_mode,
            mfft=mfft,
            scale_to=scale_to,
            phase_shift=phase_shift,
        )

    @classmethod
    @_docs_of_options
    def from_dual(
        cls,
        dual_win: ArrayLike,
        hop: int,
        fs: float,
        *,
        fft_mode: str = "onesided",
        mfft: int | None = None,
        scale_to: str | None = None,
        phase_shift: int | None = 0,
    ) -> ShortTimeFFT:
        """Returns the transform whose inverse has a window.

        Args:
          dual_win: array-like[m]: the window of the inverse.
          hop: how many samples lie between slices.

        Returns:
          The transform, its window the canonical dual of `dual_win`.
        """
        (dual,) = promote_inexact(_NAME, dual_win)
        win = canonical_dual(_NAME, dual, natural(_NAME, "hop", hop))
        return cls(
            win,
            hop,
            fs,
            fft_mode=fft_mode,
            mfft=mfft,
            dual_win=dual,
            scale_to=scale_to,
            phase_shift=phase_shift,
        )

    # -- parameters --------------------------------------------------------------------

    @property
    def hop(self) -> int:
        """The number of samples between slices."""
        return self._plan.hop

    @property
    def fs(self) -> float:
        """The sampling rate."""
        return self._plan.fs

    @property
    def fft_mode(self) -> str:
        """Which frequencies there are."""
        return self._plan.fft_mode

    @property
    def mfft(self) -> int:
        """The length of a transform."""
        return self._plan.mfft

    @property
    def scaling(self) -> str | None:
        """How the window is scaled."""
        return self._plan.scaling

    @property
    def phase_shift(self) -> int | None:
        """The linear phase in samples, or None."""
        return self._plan.phase_shift

    @property
    def T(self) -> float:
        """The time between samples."""
        return 1 / self.fs

    @property
    def delta_t(self) -> float:
        """The time between slices."""
        return self.hop / self.fs

    @property
    def delta_f(self) -> float:
        """The width of a frequency bin."""
        return self.fs / self.mfft

    @property
    def m_num(self) -> int:
        """The number of points of the window."""
        return int(self.win.size)

    @property
    def m_num_mid(self) -> int:
        """The point of the window that lies at the time of a slice."""
        return self.m_num // 2

    @property
    def onesided_fft(self) -> bool:
        """Whether negative frequencies are left out."""
        return self.fft_mode.startswith("onesided")

    @property
    def f_pts(self) -> int:
        """The number of frequencies."""
        return self.mfft // 2 + 1 if self.onesided_fft else self.mfft

    @property
    def f(self) -> Array:
        """The frequencies, float array[f_pts]."""
        if self.onesided_fft:
            return fnp.asarray(np.fft.rfftfreq(self.mfft, self.T))
        values = np.fft.fftfreq(self.mfft, self.T)
        return fnp.asarray(
            np.fft.fftshift(values) if self.fft_mode == "centered" else values
        )

    @property
    def fac_magnitude(self) -> Array:
        """What the window is multiplied by to show magnitudes."""
        return scale_factor(self.win, "magnitude", self.fs)

    @property
    def fac_psd(self) -> Array:
        """What the window is multiplied by to show power densities."""
        return scale_factor(self.win, "psd", self.fs)

    @property
    def dual_win(self) -> Array:
        """The window of the inverse; the canonical one unless another was given."""
        return (
            canonical_dual(_NAME, self.win, self.hop)
            if self._dual is None
            else self._dual
        )

    @property
    def invertible(self) -> bool:
        """Whether there is an inverse; the window must be known."""
        try:
            self.dual_win  # noqa: B018
        except ArgumentError:
            return False
        return True

    def scale_to(self, scaling: str) -> ShortTimeFFT:
        """Returns the transform with a scaled window.

        Args:
          scaling: "magnitude" or "psd".

        Returns:
          Another transform.

        Raises:
          ArgumentError: unknown scaling.
        """
        _one_of("scaling", scaling, _SCALINGS[1:])
        if scaling == self.scaling:
            return self
        by = scale_factor(self.win, scaling, self.fs)
        dual = None if self._dual is None else self._dual / by
        plan = self._plan._replace(scaling=scaling)
        return self.tree_unflatten(plan, (self.win * by, dual))

    # -- the grid of slices ------------------------------------------------------------

    @property
    def p_min(self) -> int:
        """The first slice that sees a sample, at most 0."""
        reach = self.m_num - self.m_num_mid
        # As SciPy: a window that ends in that many zeros begins with slice 0.
        if self.hop < reach - self._plan.last:
            return 0
        return 1 - -(-reach // self.hop)

    @property
    def k_min(self) -> int:
        """The first sample that slice `p_min` sees, at most 0."""
        return self.p_min * self.hop - self.m_num_mid

    def _length(self, n: Any) -> int:
        samples = natural(_NAME, "n", n)
        least = self.m_num - self.m_num_mid
        if samples < least:
            raise ArgumentError(
                f"{_NAME}: a signal must have at least {least} samples, half of the "
                f"window, got {samples}"
            )
        return samples

    def p_max(self, n: int) -> int:
        """Returns the slice after the last one that sees a sample.

        Args:
          n: the number of samples.

        Returns:
          An integer.
        """
        n = self._length(n)
        # The first sample of the window that is not 0 lies at p hop - mid + first < n.
        behind = -(-(n + self.m_num_mid - self._plan.first) // self.hop)
        return max(behind, n // self.hop + 1)

    def k_max(self, n: int) -> int:
        """Returns the sample after the last one that a slice sees.

        Args:
          n: the number of samples.

        Returns:
          An integer.
        """
        return (self.p_max(n) - 1) * self.hop - self.m_num_mid + self.m_num

    def p_num(self, n: int) -> int:
        """Returns the number of slices.

        Args:
          n: the number of samples.

        Returns:
          An integer.
        """
        return self.p_max(n) - self.p_min

    def p_range(
        self, n: int, p0: int | None = None, p1: int | None = None
    ) -> tuple[int, int]:
        """Returns the first slice and the one after the last.

        Args:
          n: the number of samples.
          p0: the first slice; None is `p_min`.
          p1: the one after the last; None is `p_max(n)`.

        Returns:
          Two integers.

        Raises:
          ArgumentError: p_min ≤ p0 < p1 ≤ p_max(n) does not hold.
        """
        low, high = self.p_min, self.p_max(n)
        first = low if p0 is None else integer(_NAME, "p0", p0)
        last = high if p1 is None else integer(_NAME, "p1", p1)
        if not low <= first < last <= high:
            raise ArgumentError(
                f"{_NAME}: p0 < p1 must lie in {low} … {high}, got p0={first}, "
                f"p1={last}"
            )
        return first, last

    @property
    def lower_border_end(self) -> tuple[int, int]:
        """The first sample and slice that do not see what lies before the signal."""
        begin = self._plan.first - self.m_num_mid
        if begin > self.hop:
            return 0, 0
        p = max(-((begin + self.hop) // self.hop), 0)
        return begin + p * self.hop + self.m_num, p + 1

    def upper_border_begin(self, n: int) -> tuple[int, int]:
        """Returns the first sample and slice that what lies behind the signal reaches.

        Args:
          n: the number of samples.

        Returns:
          Two integers.
        """
        n = self._length(n)
        p = (n - 1 - self._plan.last + self.m_num_mid) // self.hop + 1
        return (p * self.hop - self.m_num_mid, p) if p > 0 else (0, 0)

    def nearest_k_p(self, k: int, left: bool = True) -> int:
        """Returns the sample of a slice that is next to a sample.

        Args:
          k: the sample.
          left: whether to look before it, or behind it.

        Returns:
          An integer, `k` itself if there is a slice.
        """
        k = integer(_NAME, "k", k)
        return k // self.hop * self.hop if left else -(-k // self.hop) * self.hop

    def t(
        self, n: int, p0: int | None = None, p1: int | None = None, k_offset: int = 0
    ) -> Array:
        """Returns the times of slices.

        Args:
          n: the number of samples.
          p0: the first slice; None is `p_min`.
          p1: the one after the last; None is `p_max(n)`.
          k_offset: the sample of slice 0.

        Returns:
          Float array[p1 - p0].
        """
        first, last = self.p_range(n, p0, p1)
        return fnp.asarray(np.arange(first, last) * self.delta_t + k_offset * self.T)

    def extent(
        self, n: int, axes_seq: str = "tf", center_bins: bool = False
    ) -> tuple[float, float, float, float]:
        """Returns the times and frequencies that a picture of the transform spans.

        Args:
          n: the number of samples.
          axes_seq: "tf" for time first, "ft" for frequency first.
          center_bins: whether the values lie in the middle of a picture's cells.

        Returns:
          Four floats.

        Raises:
          ArgumentError: unknown order, or the frequencies do not ascend.
        """
        if axes_seq not in ("tf", "ft"):
            raise ArgumentError(
                f'{_NAME}: axes_seq must be "tf" or "ft", got {axes_seq!r}'
            )
        if self.fft_mode == "twosided":
            raise ArgumentError(
                f'{_NAME}: the frequencies of fft_mode="twosided" do not ascend: '
                'choose "centered"'
            )
        low = 0 if self.onesided_fft else -(self.mfft // 2)
        first, last = self.p_range(n)
        shift = 0.5 if center_bins else 0.0
        times = [(p - shift) * self.delta_t for p in (first, last)]
        bins = [(q - shift) * self.delta_f for q in (low, low + self.f_pts)]
        a, b = (times, bins) if axes_seq == "tf" else (bins, times)
        return a[0], a[1], b[0], b[1]

    # -- transforms --------------------------------------------------------------------

    @_docs_of_slices
    def stft(
        self,
        x: ArrayLike,
        p0: int | None = None,
        p1: int | None = None,
        *,
        k_offset: int = 0,
        padding: str = "zeros",
        axis: int = -1,
    ) -> Array:
        """Returns the transform of a signal.

        Args:
          padding: what lies beyond the signal: "zeros", "edge", "even" or "odd".

        Returns:
          Complex array, frequencies in place of `axis` and slices in a last axis.

        Raises:
          ArgumentError: unknown padding, slices are out of range, the signal is shorter
            than half of the window, or complex and `fft_mode` one-sided.
        """
        return self.stft_detrend(
            x, None, p0, p1, k_offset=k_offset, padding=padding, axis=axis
        )

    @_docs_of_slices
    def stft_detrend(
        self,
        x: ArrayLike,
        detr: str | Callable[[Array], Array] | None,
        p0: int | None = None,
        p1: int | None = None,
        *,
        k_offset: int = 0,
        padding: str = "zeros",
        axis: int = -1,
    ) -> Array:
        """Returns the transform of a signal whose slices have lost their trend.

        Args:
          detr: "linear" or "constant"; a function of slices along the last axis; None
            is for no change.

        Returns:
          As `stft`.
        """
        x = promote_inexact(_NAME, x, self.win)[0]
        if self.onesided_fft and dtypes.is_complex(x.dtype):
            raise ArgumentError(
                f"{_NAME}: fft_mode={self.fft_mode!r} needs a real signal, got "
                f'{x.aval}: choose "twosided" or "centered"'
            )
        if padding not in _PADDINGS:
            _one_of("padding", padding, tuple(_PADDINGS))
        axis = canonical_axis(_NAME, axis, x.ndim)
        x = fnp.moveaxis(x, axis, -1)
        n = x.shape[-1]
        first, last = self.p_range(n, p0, p1)
        begin = first * self.hop + integer(_NAME, "k_offset", k_offset) - self.m_num_mid
        end = begin + (last - first - 1) * self.hop + self.m_num
        early, late = max(-begin, 0), max(end - n, 0)
        pads = [(0, 0)] * (x.ndim - 1) + [(early, late)]
        x = fnp.pad(x, pads, **_PADDINGS[padding])
        starts = begin + early + np.arange(last - first)[:, None] * self.hop
        slices = x[..., starts + np.arange(self.m_num)]
        if callable(detr):
            slices = detr(slices)
        elif detr is not None:
            slices = detrend(slices, type=detr)
        out = self._forward(slices * fnp.conj(convert(self.win, x.dtype)))
        return fnp.moveaxis(fnp.swapaxes(out, -1, -2), -2, axis)

    @_docs_of_slices
    def spectrogram(
        self,
        x: ArrayLike,
        y: ArrayLike | None = None,
        detr: str | Callable[[Array], Array] | None = None,
        *,
        p0: int | None = None,
        p1: int | None = None,
        k_offset: int = 0,
        padding: str = "zeros",
        axis: int = -1,
    ) -> Array:
        """Returns the squares of a transform, or its product with another conjugated.

        Args:
          y: array-like of its shape: another signal; None is `x`.
          detr: see `stft_detrend`.

        Returns:
          Float array of the shape of `stft(x)`; with `y` a complex one.
        """

        def transformed(signal: Any) -> Array:
            return self.stft_detrend(
                signal, detr, p0, p1, k_offset=k_offset, padding=padding, axis=axis
            )

        out = transformed(x)
        if y is None or y is x:
            return fnp.real(out) ** 2 + fnp.imag(out) ** 2
        return out * fnp.conj(transformed(y))

    def istft(
        self,
        S: ArrayLike,
        k0: int = 0,
        k1: int | None = None,
        *,
        f_axis: int = -2,
        t_axis: int = -1,
    ) -> Array:
        """Returns the signal of a transform.

        Args:
          S: array-like[..., f_pts, ..., slices]: its first slice is `p_min`.
          k0: the first sample.
          k1: the sample after the last; None is all that the slices see.
          f_axis: the axis of frequencies.
          t_axis: the axis of slices.

        Returns:
          Float or complex array, time in place of the lesser one of the axes.

        Raises:
          ArgumentError: there is no inverse, or k0 < k1 are out of range.
          ShapeError: there are other frequencies than `f_pts`.
        """
        (S,) = promote_inexact(_NAME, S)
        f_axis = canonical_axis(_NAME, f_axis, S.ndim, "f_axis")
        t_axis = canonical_axis(_NAME, t_axis, S.ndim, "t_axis")
        if f_axis == t_axis:
            raise ArgumentError(f"{_NAME}: f_axis and t_axis must differ, got {f_axis}")
        if S.shape[f_axis] != self.f_pts:
            raise ShapeError(
                f"{_NAME}: S must have f_pts = {self.f_pts} frequencies in axis "
                f"{f_axis}, got {S.aval}"
            )
        S = fnp.moveaxis(S, (f_axis, t_axis), (-1, -2))
        count = S.shape[-2]
        least = self.m_num - self.m_num_mid
        end = (count - 1 + self.p_min) * self.hop + least
        k0 = integer(_NAME, "k0", k0)
        k1 = end if k1 is None else integer(_NAME, "k1", k1)
        if not self.k_min <= k0 < k1 <= end:
            raise ArgumentError(
                f"{_NAME}: k0 < k1 must lie in {self.k_min} … {end}, which the "
                f"{count} slices see, got k0={k0}, k1={k1}"
            )
        parts = self._backward(S) * self.dual_win
        total = overlapped(parts, self.hop)[..., k0 - self.k_min : k1 - self.k_min]
        return fnp.moveaxis(total, -1, f_axis if f_axis < t_axis else f_axis - 1)

    def _turn(self) -> int:
        shift = self.phase_shift or 0
        return (shift + self.m_num_mid) % self.m_num

    def _forward(self, slices: Array) -> Array:
        """Returns the spectra of windowed slices along the last axis."""
        if self.phase_shift is not None:
            pads = [(0, 0)] * (slices.ndim - 1) + [(0, self.mfft - self.m_num)]
            slices = fnp.roll(fnp.pad(slices, pads), -self._turn(), -1)
        if self.onesided_fft:
            out = fnp.fft.rfft(slices, self.mfft)
            return out * convert(self._both_sides(), dtypes.to_real(out.dtype))
        out = fnp.fft.fft(slices, self.mfft)
        return fnp.fft.fftshift(out, -1) if self.fft_mode == "centered" else out

    def _backward(self, spectra: Array) -> Array:
        """Returns slices of their spectra along the last axis."""
        if self.onesided_fft:
            by = convert(self._both_sides(), dtypes.to_real(spectra.dtype))
            out = fnp.fft.irfft(spectra / by, self.mfft)
        else:
            if self.fft_mode == "centered":
                spectra = fnp.fft.ifftshift(spectra, -1)
            out = fnp.fft.ifft(spectra, self.mfft)
        if self.phase_shift is not None:
            out = fnp.roll(out, self._turn(), -1)
        return out[..., : self.m_num]

    def _both_sides(self) -> Array:
        """Returns what frequencies count for those below 0 that are left out."""
        twice = np.ones(self.f_pts)
        if self.fft_mode == "onesided2X":
            stop = self.f_pts - (self.mfft % 2 == 0)
            twice[1:stop] = math.sqrt(2) if self.scaling == "psd" else 2
        return fnp.asarray(twice)
