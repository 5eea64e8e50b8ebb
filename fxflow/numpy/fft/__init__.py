"""Discrete Fourier transforms: `fnp.fft`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.numpy.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from fxflow.numpy.fft.transforms import (
    fft, fft2, fftn, hfft, ifft, ifft2, ifftn, ihfft, irfft, irfft2, irfftn, rfft,
    rfft2, rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]
# fmt: on

_public(globals(), __all__)
