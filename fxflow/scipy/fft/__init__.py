"""Fourier, cosine, sine and Hankel transforms of SciPy: `fxflow.scipy.fft`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.numpy.fft import (
    fft, fft2, fftfreq, fftn, fftshift, hfft, ifft, ifft2, ifftn, ifftshift, ihfft,
    irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
)
from fxflow.scipy.fft.cosine import dct, dctn, idct, idctn
from fxflow.scipy.fft.hankel import fht, fhtoffset, ifht, next_fast_len, prev_fast_len
from fxflow.scipy.fft.hermitian import hfft2, hfftn, ihfft2, ihfftn
from fxflow.scipy.fft.sine import dst, dstn, idst, idstn

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "fht",
    "fhtoffset",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ifht",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "prev_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
# fmt: on

_public(globals(), __all__)
