"""Samples of Fourier transforms."""

from __future__ import annotations

import numpy as np

from fxflow.lax.fourier import FftType
from tests.conformance.harness import Sample, uniform


def transforms(rng: np.random.Generator) -> list[Sample]:
    out = []
    for lengths in ((8,), (5,), (4, 6), (3, 2, 5), (1,)):
        half = (*lengths[:-1], lengths[-1] // 2 + 1)
        for fft_type, shape, dtype in (
            (FftType.FFT, lengths, "complex64"),
            (FftType.IFFT, lengths, "complex64"),
            (FftType.RFFT, lengths, "float32"),
            (FftType.IRFFT, half, "complex64"),
        ):
            value = uniform(rng, (2, *shape), dtype)
            params = {"fft_type": fft_type, "fft_lengths": lengths}
            out.append(Sample((value,), params))
    for fft_type, dtype in ((FftType.FFT, "complex128"), (FftType.RFFT, "float64")):
        params = {"fft_type": fft_type, "fft_lengths": (6,)}
        out.append(Sample((uniform(rng, (6,), dtype),), params))
        out.append(Sample((np.zeros((0, 6), dtype),), params, "empty", diff=False))
    return out


SAMPLES = {"fft": transforms}
