"""Signals with more points at both ends."""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError

_BOUNDARIES = {"zeros": "constant", "even": "reflect", "constant": "edge", "odd": "odd"}


def extended(name: str, x: Array, boundary: str | None, n: int) -> Array:
    """Returns a signal with `n` more points at both ends of the last axis."""
    if boundary is None:
        return x
    if boundary not in _BOUNDARIES:
        known = ", ".join(f'"{b}"' for b in _BOUNDARIES)
        raise ArgumentError(
            f"{name}: boundary must be one of {known} or None, got {boundary!r}"
        )
    pads = [(0, 0)] * (x.aval.ndim - 1) + [(n, n)]
    if boundary == "odd":
        left, right = x[..., :1], x[..., -1:]
        front = 2 * left - fnp.flip(x[..., 1 : n + 1], -1)
        back = 2 * right - fnp.flip(x[..., x.aval.shape[-1] - 1 - n : -1], -1)
        return fnp.concatenate([front, x, back], -1)
    return fnp.pad(x, pads, _BOUNDARIES[boundary])
