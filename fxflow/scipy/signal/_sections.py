"""Pairing zeros and poles into second-order sections, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.errors import ArgumentError

Roots = np.ndarray[Any, Any]


def _split(name: str, what: str, roots: Roots) -> tuple[list[complex], list[float]]:
    """Returns the complex roots above the real axis, and the real ones."""
    roots = np.atleast_1d(np.asarray(roots, np.complex128)).ravel()
    near = np.abs(roots.imag) <= 100 * np.finfo(float).eps * np.abs(roots)
    real = sorted(float(r) for r in roots[near].real)
    above = sorted(roots[~near & (roots.imag > 0)], key=lambda r: (r.real, r.imag))
    below = [complex(np.conj(r)) for r in roots[~near & (roots.imag < 0)]]
    found = []
    for root in above:
        match = min(below, key=lambda r: abs(r - root), default=None)
        if match is None or abs(match - root) > 1e-6 * max(abs(root), 1e-300):
            below = [0]
            break
        below.remove(match)
        found.append((root + match) / 2)
    if below:
        raise ArgumentError(f"{name}: {what} must be real or in conjugate pairs")
    return [complex(r) for r in found], real


def _nearest(roots: list[Any], to: complex) -> Any:
    """Takes the root that is nearest out of a list."""
    return roots.pop(int(np.argmin([abs(r - to) for r in roots])))


class _Pool:
    """Roots that no section has yet: complex ones stand for a pair."""

    def __init__(self, name: str, what: str, roots: Roots) -> None:
        self.above, self.real = _split(name, what, roots)

    def __len__(self) -> int:
        return 2 * len(self.above) + len(self.real)

    def take(self, to: complex, kind: str = "any") -> list[complex]:
        """Takes the nearest root of a kind, with its conjugate if it is complex."""
        real = self.real if kind != "complex" else []
        above = self.above if kind != "real" else []
        near = [min((abs(r - to) for r in rs), default=np.inf) for rs in (above, real)]
        if near[0] <= near[1] and above:
            root = _nearest(above, to)
            return [root, complex(np.conj(root))]
        return [_nearest(real, to)]


def _worst(pool: _Pool, distance: Any) -> list[complex]:
    """Takes the pole that is nearest to instability."""
    everything = [*pool.above, *pool.real]
    worst = everything[int(np.argmin([distance(r) for r in everything]))]
    return pool.take(worst, "complex" if worst in pool.above else "real")


def paired_sections(name: str, z: Roots, p: Roots, k: float, pairing: str) -> Roots:
    """Returns sections, the poles nearest to instability in the last one.

    Args:
      name: of the function, for messages.
      z: zeros.
      p: poles.
      k: the gain, in the first section.
      pairing: "nearest", "keep_odd" or "minimal".
    """
    z, p = (np.atleast_1d(np.asarray(r)) for r in (z, p))
    analog = pairing == "minimal"
    if analog:
        if z.size > p.size:
            raise ArgumentError(
                f"{name}: an analog filter must not have more zeros than poles, got "
                f"{z.size} and {p.size}"
            )
    else:
        longest = max(z.size, p.size)
        if longest % 2 and pairing == "nearest":
            longest += 1
        z, p = (np.concatenate([r, np.zeros(longest - r.size)]) for r in (z, p))
    count = max(1, (max(z.size, p.size) + 1) // 2)

    def distance(root: complex) -> float:
        return abs(root.real) if analog else abs(1 - abs(root))

    zeros, poles = _Pool(name, "z", z), _Pool(name, "p", p)
    sections = np.zeros((count, 6))
    for at in reversed(range(count)):
        last: list[complex] = _worst(poles, distance) if len(poles) else []
        first = last[0] if last else 0
        own: list[complex] = []
        single = len(last) == 1 and not poles.real
        if single and len(zeros) and (len(zeros) % 2 or analog):
            # A pole alone: a section of first order.
            if zeros.real and (analog or len(zeros) % 2):
                own = zeros.take(first, "real")
        elif (
            len(last) == 1
            and len(poles) + 1 == len(zeros)
            and len(zeros.real) == 1
            and zeros.above
        ):
            # The only real zero is left for the last real pole.
            own = zeros.take(first, "complex")
            last += _worst(_real_only(poles), distance) if poles.real else []
        else:
            if len(last) == 1 and poles.real:
                other = min(poles.real, key=distance)
                poles.real.remove(other)
                last.append(other)
            if len(zeros):
                own = zeros.take(first)
                if len(own) == 1 and zeros.real:
                    own += zeros.take(first, "real")
                elif len(own) == 1 and len(zeros) and not zeros.real:
                    zeros.real.append(own[0].real)
                    own = zeros.take(first, "complex")
        numerator, denominator = (
            np.atleast_1d(np.real(np.poly(r))) for r in (own, last)
        )
        if analog:
            sections[at, 3 - numerator.size : 3] = numerator
            sections[at, 6 - denominator.size :] = denominator
        else:
            sections[at, : numerator.size] = numerator
            sections[at, 3 : 3 + denominator.size] = denominator
    sections[0, :3] *= k
    return sections


def _real_only(pool: _Pool) -> _Pool:
    only = object.__new__(_Pool)
    only.above, only.real = [], pool.real
    return only
