"""Cosine transforms of SciPy: `fxflow.scipy.fft`."""

from fxflow.core.boundary import public as _public
from fxflow.scipy.fft.cosine import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]

_public(globals(), __all__)
