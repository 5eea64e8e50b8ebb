"""Exact values of special functions over the exponent ranges of 32 and 64 bits.

`python -m tests.sweeps.special_references` computes them with mpmath, which takes
minutes, and writes `data/special_functions.npz`; `test_special_functions.py` reads it.
A row of a case is its arguments, and for the value and for each derivative ("…
slopes" says by which arguments): the exact number, and how far it moves if every
argument does by its own size (Σ |x ∂f/∂x|).
"""

from __future__ import annotations

import signal
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).parent / "data" / "special_functions.npz"


class Case(NamedTuple):
    """What is computed of a function.

    Attributes:
      reference: of mpmath's numbers.
      draws: for each argument, or for all of them, how it is drawn.
      slopes: by which arguments there is a derivative.
      bits: precision: enough for differences at tiny numbers, where that is not slow.
      exact: derivatives that mpmath need not find by differences.
    """

    reference: Callable[..., Any]
    draws: tuple[Callable[[Any, int], Any], ...] | Callable[[Any, int], Any]
    slopes: tuple[int, ...] = (0,)
    bits: int = 2000
    exact: tuple[Callable[..., Any], ...] = ()


# -- arguments -------------------------------------------------------------------------


def _power(rng: Any, count: int, low: float, high: float) -> Any:
    return np.ldexp(1 + rng.random(count), rng.integers(int(low), int(high), count))


def _all_sizes(rng: Any, count: int) -> Any:
    """A third of ordinary size, a third of any in 32 bits, the rest near integers."""
    part = count // 4
    near = rng.integers(1, 5, part) + rng.choice([-1, 1], part) * _power(
        rng, part, -20, -1
    )
    return np.concatenate(
        [
            _power(rng, count - 3 * part, -5, 6),
            _power(rng, part, -125, 127),
            _power(rng, part, -20, 30),
            near,
        ]
    )


def positive(rng: Any, count: int) -> Any:
    """Positive numbers; the last eighth of sizes that 64 bits alone have."""
    wide = count // 8
    narrow = _all_sizes(rng, count - wide).astype(np.float32)
    return np.concatenate([narrow, _power(rng, wide, -1000, 1000)])


def real(rng: Any, count: int) -> Any:
    """Numbers of either sign."""
    return positive(rng, count) * rng.choice([-1, 1], count)


def above_one(rng: Any, count: int) -> Any:
    """Numbers above 1."""
    return np.float32(1 + np.float32(positive(rng, count).clip(1e-7, 1e30)))


def waves(rng: Any, count: int) -> Any:
    """Numbers of either sign that differences can follow the waves of."""
    return np.fmod(real(rng, count), 1e5)


def moderate(rng: Any, count: int) -> Any:
    """Numbers of either sign, neither huge nor tiny."""
    return np.float32(_power(rng, count, -6, 5) * rng.choice([-1, 1], count))


def unit(rng: Any, count: int) -> Any:
    """Numbers between 0 and 1, near either end too."""
    part = count // 4
    return np.concatenate(
        [
            np.float32(rng.random(count - 3 * part)),
            np.float32(1 - _power(rng, part, -24, -2)),
            np.float32(_power(rng, part, -125, -2)),
            _power(rng, part // 2, -1000, -125),
            1 - _power(rng, part - part // 2, -52, -24),
        ]
    ).clip(1e-300, 1 - 2**-53)


def signed_unit(rng: Any, count: int) -> Any:
    """Numbers between -1 and 1."""
    return unit(rng, count) * rng.choice([-1, 1], count)


def whole(low: int, high: int) -> Callable[[Any, int], Any]:
    """Integers."""
    return lambda rng, count: rng.integers(low, high, count).astype(float)


def gamma_pairs(rng: Any, count: int) -> Any:
    """Shapes, and points in the bulk, in the tails and anywhere."""
    third = count // 3
    a = positive(rng, count)
    a[:third] = np.float32(_power(rng, third, 0, 100))
    x = positive(rng, count)
    spread = rng.normal(size=count) * rng.choice([0.5, 2, 6], count)
    x[: 2 * third] = np.maximum(a + spread * np.sqrt(a), a * 1e-3)[: 2 * third]
    x[:third] = np.float32(x[:third])
    # Clipped to sizes whose differences 200 bits hold.
    return a.clip(1e-30, 1e30), x.clip(1e-30, 1e30)


def beta_triples(rng: Any, count: int) -> Any:
    """Shapes, and points in the bulk, in the tails and anywhere."""
    a, b = (np.float32(_power(rng, count, -20, 40)) for _ in "ab")
    x = unit(rng, count)
    half = count // 2
    a[:half] = np.float32(_power(rng, half, -4, 24))
    b[:half] = a[:half] * np.float32(_power(rng, half, -3, 3))
    mean = a.astype(float) / (a.astype(float) + b)
    spread = np.sqrt(mean * (1 - mean) / (1.0 + a + b))
    near = mean + spread * rng.normal(size=count) * rng.choice([0.5, 2], count)
    x[:half] = np.float32(near.clip(1e-30, 1 - 2**-24)[:half])
    return a, b, x


def close_pairs(rng: Any, count: int) -> Any:
    """Positive numbers, half of the pairs nearly equal."""
    p, q = positive(rng, count), positive(rng, count)
    half = count // 2
    q[:half] = np.float32(p[:half] * (1 + np.float32(_power(rng, half, -20, -1))))
    return p, q


# -- functions -------------------------------------------------------------------------


def cases(mp: Any) -> dict[str, Case]:
    """Returns what is computed of each function, from mpmath."""
    pi, inf = mp.pi, mp.inf

    def gammaln(x: Any) -> Any:
        if x > 0:
            return mp.loggamma(x)
        if x == mp.floor(x):
            return inf
        return mp.log(pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)

    def digamma(x: Any) -> Any:
        if x > 0:
            return mp.digamma(x)
        return mp.digamma(1 - x) - pi * mp.cospi(x) / mp.sinpi(x)

    def log_density(a: Any, t: Any) -> Any:
        return a * mp.log(t) - t - mp.loggamma(a)

    def tail(a: Any, x: Any, weight: Any) -> Any:
        """∫ weight(t) tᵃ⁻¹ e⁻ᵗ / Γ(a) dt, on the side of x that is the smaller."""
        # In s = log t the integrand is smooth, with one peak at log a.
        upper = x > a
        width = 1 / mp.sqrt(a) if a > 1 else mp.mpf(1)
        here = mp.log(x)
        sign = 1 if upper else -1
        slope = abs(a - x)
        scale = 1 / (slope + mp.sqrt(a + x) + 0 * width)
        if not upper and x < 1:
            scale = 1 / a
        edges = [here]
        for k in range(26):
            edges.append(here + sign * scale * mp.mpf(2) ** (k - 6))
            if abs(edges[-1] - here) > 60 * scale:
                break
        f = lambda s: weight(mp.exp(s)) * mp.exp(log_density(a, mp.exp(s)))
        pieces = sorted(edges)
        return mp.quad(f, pieces), upper

    def lower(a: Any, x: Any) -> Any:
        if a < 1e5:
            return mp.gammainc(a, 0, x, regularized=True)
        value, upper = tail(a, x, lambda t: 1)
        return 1 - value if upper else value

    def upper(a: Any, x: Any) -> Any:
        if a < 1e5:
            return mp.gammainc(a, x, inf, regularized=True)
        value, above = tail(a, x, lambda t: 1)
        return value if above else 1 - value

    def lower_slope(a: Any, x: Any) -> Any:
        if a < 1e5:
            return mp.diff(lambda a: lower(a, x), a, h=a * mp.mpf(2) ** -60)
        psi = mp.digamma(a)
        value, above = tail(a, x, lambda t: mp.log(t) - psi)
        return -value if above else value

    density = lambda a, x: mp.exp(log_density(a, x)) / x

    def ndtr(x: Any) -> Any:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def ndtri(p: Any) -> Any:
        if p > 0.5:
            return -ndtri(1 - p)
        x = -mp.sqrt(-2 * mp.log(2 * p)) if p < 0.4 else (p - 0.5) * mp.sqrt(2 * pi)
        for _ in range(100):
            now = ndtr(x)
            step = (mp.log(now) - mp.log(p)) * now / mp.npdf(x)
            x -= step
            if abs(step) < abs(x) * mp.mpf(2) ** -150:
                break
        return x

    def betainc(a: Any, b: Any, x: Any) -> Any:
        if max(a, b) < 300:
            return mp.betainc(a, b, 0, x, regularized=True)
        constant = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
        # In s = log(t / (1 - t)).
        here = mp.log(x) - mp.log1p(-x)
        above = x > a / (a + b)
        sign = 1 if above else -1
        slope = abs(a * (1 - x) - b * x)
        rate = b if above else a
        scale = 1 / (slope + mp.sqrt((a + b) * x * (1 - x)) + min(rate, 1))

        def f(s: Any) -> Any:
            low = -mp.log1p(mp.exp(-s)) if s > -50 else s - mp.log1p(mp.exp(s))
            high = -mp.log1p(mp.exp(s)) if s < 50 else -s - mp.log1p(mp.exp(-s))
            return mp.exp(constant + a * low + b * high)

        edges = [here]
        for k in range(60):
            edges.append(here + sign * scale * mp.mpf(2) ** (k - 1))
            if mp.fabs(f(edges[-1])) < mp.mpf(2) ** -80 * f(here):
                break
        value = mp.quad(f, sorted(edges))
        return 1 - value if above else value

    def log_beta(a: Any, b: Any) -> Any:
        return gammaln(a) + gammaln(b) - gammaln(a + b)

    def owens_t(h: Any, a: Any) -> Any:
        h, sign, a = abs(h), mp.sign(a), abs(a)
        f = lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t)
        end = min(a, 20 / h) if h else a
        edges = [end * mp.mpf(2) ** -k for k in range(12, -1, -1)]
        return sign * mp.quad(f, [0, *edges]) / (2 * pi)

    def spence(x: Any) -> Any:
        # Away from 1 by the reflection and the inversion of the dilogarithm.
        if x > 2:
            y = 1 / x
            return -(mp.log(x) ** 2) / 2 - spence(y)
        if x < 0.5:
            return pi**2 / 6 - mp.log(x) * mp.log1p(-x) - spence(1 - x)
        return mp.polylog(2, 1 - x).real

    def zeta_(x: Any, q: Any) -> Any:
        return mp.zeta(x, q).real

    def boxcox(x: Any, power: Any) -> Any:
        return mp.expm1(power * mp.log(x)) / power

    def softplus(x: Any) -> Any:
        return max(x, 0) + mp.log1p(mp.exp(-abs(x)))

    log1p = mp.log1p
    return {
        "gammaln": Case(gammaln, real, exact=(digamma,)),
        "gamma": Case(mp.gamma, real),
        "digamma": Case(digamma, real),
        "erf": Case(mp.erf, real),
        "erfc": Case(mp.erfc, real),
        "erfinv": Case(
            lambda y: (
                mp.sign(y) * -ndtri((1 - abs(y)) / 2) / mp.sqrt(2)
                if abs(y) > 0.1
                else mp.erfinv(y)
            ),
            signed_unit,
        ),
        "erfcx": Case(lambda x: mp.exp(x * x) * mp.erfc(x), real),
        "dawsn": Case(lambda x: mp.sqrt(pi) / 2 * mp.exp(-x * x) * mp.erfi(x), real),
        "ndtr": Case(ndtr, real),
        "log_ndtr": Case(
            lambda x: mp.log(ndtr(x)) if x < 0 else log1p(-ndtr(-x)), real
        ),
        "ndtri": Case(ndtri, unit),
        "i0": Case(lambda x: mp.besseli(0, x), real),
        "i1": Case(lambda x: mp.besseli(1, x), real),
        "i0e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), real),
        "i1e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), real),
        "expit": Case(lambda x: 1 / (1 + mp.exp(-x)), real),
        "log_expit": Case(lambda x: -softplus(-x), real),
        "logit": Case(lambda p: mp.log(p) - log1p(-p), unit),
        "entr": Case(lambda x: -x * mp.log(x), positive),
        "exp1": Case(mp.e1, positive),
        "expi": Case(mp.ei, real),
        "spence": Case(spence, positive),
        "si": Case(mp.si, waves),
        "ci": Case(mp.ci, lambda rng, n: abs(waves(rng, n))),
        "fresnel_s": Case(mp.fresnels, waves, bits=4000),
        "fresnel_c": Case(mp.fresnelc, waves, bits=4000),
        "factorial": Case(mp.factorial, positive),
        "zeta": Case(lambda x: mp.zeta(x).real, above_one, ()),
        "jv0": Case(lambda x: mp.besselj(0, x), waves),
        "jv3": Case(lambda x: mp.besselj(3, x), waves),
        "multigammaln": Case(
            lambda x: (
                3 * mp.log(pi) / 2 + sum(gammaln(x - mp.mpf(k) / 2) for k in range(3))
            ),
            above_one,
        ),
        "beta": Case(mp.beta, (real, real), (0, 1)),
        "betaln": Case(log_beta, (positive, positive), (0, 1)),
        "poch": Case(lambda z, m: mp.gammaprod([z + m], [z]), (moderate,) * 2, (0, 1)),
        "gammainc": Case(lower, gamma_pairs, (0, 1), 200, (lower_slope, density)),
        "gammaincc": Case(
            upper,
            gamma_pairs,
            (0, 1),
            200,
            (lambda a, x: -lower_slope(a, x), lambda a, x: -density(a, x)),
        ),
        "random_gamma_grad": Case(
            lambda a, x: -lower_slope(a, x) / density(a, x), gamma_pairs, (), 200
        ),
        "betainc": Case(
            betainc,
            beta_triples,
            (2,),
            110,
            (
                lambda a, b, x: mp.exp(
                    (a - 1) * mp.log(x) + (b - 1) * log1p(-x) - log_beta(a, b)
                ),
            ),
        ),
        "zeta_of_two": Case(
            lambda x, q: zeta_(x, q),
            (above_one, positive),
            (1,),
            200,
            (lambda x, q: -x * zeta_(x + 1, q),),
        ),
        "polygamma": Case(
            lambda n, x: mp.polygamma(int(n), x),
            (whole(0, 7), positive),
            (1,),
            200,
            (lambda n, x: mp.polygamma(int(n) + 1, x),),
        ),
        "expn": Case(
            lambda n, x: mp.expint(n, x),
            (whole(0, 9), positive),
            (1,),
            200,
            (lambda n, x: -mp.expint(n - 1, x),),
        ),
        "comb": Case(
            lambda n, k: mp.binomial(n, k), (whole(150, 300), whole(0, 150)), ()
        ),
        "xlogy": Case(lambda x, y: x * mp.log(y), (real, positive), (0, 1)),
        "xlog1py": Case(lambda x, y: x * log1p(y), (real, positive), (0, 1)),
        "rel_entr": Case(lambda p, q: p * mp.log(p / q), close_pairs, (0, 1)),
        "kl_div": Case(lambda p, q: p * mp.log(p / q) - p + q, close_pairs, (0, 1)),
        "boxcox": Case(boxcox, (positive, moderate), (0, 1)),
        "boxcox1p": Case(
            lambda x, k: mp.expm1(k * log1p(x)) / k, (positive, moderate), (0, 1)
        ),
        "owens_t": Case(
            owens_t,
            (moderate, moderate),
            (0, 1),
            150,
            (
                lambda h, a: (
                    -mp.exp(-h * h / 2) * mp.erf(a * h / mp.sqrt(2)) / mp.sqrt(8 * pi)
                ),
                lambda h, a: mp.exp(-h * h * (1 + a * a) / 2) / (2 * pi * (1 + a * a)),
            ),
        ),
    }


# -- computing -------------------------------------------------------------------------


def _drawn(case: Case, rng: Any, count: int) -> Any:
    if callable(case.draws):
        got = case.draws(rng, count)
        return got if isinstance(got, tuple) else (got,)
    columns = []
    order = np.arange(count)
    for draw in case.draws:
        # 64 bits' own sizes stay together at the end; the others in any order.
        wide = count // 8
        rng.shuffle(order[: count - wide])
        columns.append(np.asarray(draw(rng, count), float)[order])
    return columns


def _row(mp: Any, case: Case, args: Any) -> list[float]:
    with mp.workprec(case.bits):
        exact = [mp.mpf(float(a)) for a in args]

        def by(f: Callable[..., Any], i: int) -> Callable[..., Any]:
            def slope(*at: Any) -> Any:
                x = at[i]
                h = abs(x) * mp.mpf(2) ** -60
                up, down = ((*at[:i], x + d, *at[i + 1 :]) for d in (h, -h))
                return (f(*up) - f(*down)) / (2 * h)

            return slope

        f = case.reference
        slopes = list(case.exact) or [by(f, i) for i in case.slopes]
        out = [float(a) for a in args]
        for g in (f, *slopes):
            value = g(*exact)
            if g is f and slopes and len(case.slopes) == len(args):
                move = sum(
                    abs(x * s(*exact)) for x, s in zip(exact, slopes, strict=True)
                )
            else:
                move = sum(abs(x * by(g, i)(*exact)) for i, x in enumerate(exact))
            out += [float(value), float(move)]
    return out


def compute(name: str, case: Case, mp: Any, count: int) -> Any:
    """Returns the rows of a case: those that take more than seconds are left out."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = []

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    for args in zip(*_drawn(case, rng, count), strict=True):
        signal.alarm(6)
        try:
            row = _row(mp, case, args)
            if not any(np.isnan(row)):
                rows.append(row)
        except (TimeoutError, ValueError, ZeroDivisionError, ArithmeticError):
            pass
        except Exception as error:
            print(name, args, repr(error)[:80])
        finally:
            signal.alarm(0)
    print(f"{name}: {len(rows)} of {count}", flush=True)
    return np.array(rows)


def main(names: list[str], count: int = 96) -> None:
    """Computes the cases named, or all, and keeps the others."""
    import mpmath

    done = dict(np.load(FILE)) if FILE.exists() else {}
    for name, case in cases(mpmath.mp).items():
        if not names or name in names:
            done[name] = compute(name, case, mpmath.mp, count)
            done[f"{name} slopes"] = np.array(case.slopes, int)
            np.savez_compressed(FILE, **done)


if __name__ == "__main__":
    main(sys.argv[1:])
