"""Discrete Fourier transforms: `fnp.fft`."""

from fxflow.core.boundary import public as _public
from fxflow.numpy.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from fxflow.numpy.fft.one_axis import fft, hfft, ifft, ihfft, irfft, rfft
from fxflow.numpy.fft.several_axes import (
    fft2,
    fftn,
    ifft2,
    ifftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_public(globals(), __all__)
