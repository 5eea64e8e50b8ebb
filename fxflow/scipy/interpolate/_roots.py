"""Where polynomials between breakpoints have a value, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np


def roots_between(
    c: np.ndarray[Any, Any],
    x: np.ndarray[Any, Any],
    y: float,
    jumps: bool,
    beyond: bool,
) -> list[float]:
    """Returns the places at which polynomials between breakpoints are `y`."""
    found: list[float] = []
    last = c.shape[1] - 1

    def add(root: float) -> None:
        if not found or found[-1] != root:
            found.append(root)

    for i in range(last + 1):
        width = x[i + 1] - x[i]
        if not width > 0:
            continue
        if i and jumps:
            before = np.polyval(c[:, i - 1], x[i] - x[i - 1]) - y
            if before * (c[-1, i] - y) < 0:
                add(float(x[i]))
        row = c[:, i].copy()
        row[-1] -= y
        if not row.any():
            found += [float(x[i]), np.nan]
            continue
        roots = np.roots(row)
        # A double root may come as a pair with imaginary parts of rounding.
        near = np.abs(roots.imag) <= 1e-8 * np.maximum(np.abs(roots), width)
        real = np.sort(roots.real[near])
        slack = 1e-12 * width
        for root in real:
            low = -np.inf if beyond and i == 0 else -slack
            high = np.inf if beyond and i == last else width + slack
            if low <= root <= high:
                inside = min(max(root, 0.0 if low > -np.inf else root), root)
                add(float(x[i] + (min(inside, width) if high < np.inf else inside)))
    tidy: list[float] = []
    for root in found:
        if tidy and abs(root - tidy[-1]) <= 1e-10 * (x[-1] - x[0]):
            continue
        tidy.append(root)
    return tidy
