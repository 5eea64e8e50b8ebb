"""`tune`: static arguments of kernels that are chosen by measuring."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.boundary import boundary
from fxflow.core.caches import clear_caches
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.eager import EvalTrace
from fxflow.devices import buffers, cache
from fxflow.devices.native import compiler_version
from fxflow.errors import ArgumentError, KernelError
from fxflow.kernels.checking import near
from fxflow.lax.kernels.params import KernelParams
from fxflow.transforms.inspection import make_graph
from fxflow.transforms.jit import jit

#: Most candidates of a kernel, all arguments together.
MAX_CANDIDATES = 12
#: Seconds that measuring one kernel takes at the most, besides compilation and one run
#: of each candidate.
SECONDS = 2.0

Choice = dict[str, Any]


class Tune(Frozen):
    """Candidates for a static argument of a kernel; see `tune`.

    Attributes:
      candidates: the first is the default.
    """

    candidates: tuple[Any, ...]


class Tuned(NamedTuple):
    """What `tuned` found for one kernel and one set of types.

    Attributes:
      kernel: its name.
      choice: the value of each argument that has candidates.
      seconds: of the function with each candidate, the least of the runs; empty if the
        choice was on disk.
    """

    kernel: str
    choice: Choice
    seconds: tuple[float, ...]


def tune(*candidates: Any) -> Any:
    """Candidates for a keyword-only argument of a kernel, as its default.

    The first candidate is the value, unless `tuned` has measured the kernel for the
    types of its operands, or `config.kernel_tuning` is set. A value that a caller
    passes is used as it is.

    Args:
      *candidates: at least one: ints, strings, or other values that JSON can hold.

    Returns:
      The default.

    Raises:
      ArgumentError: there is no candidate, too many, or one that JSON does not hold.

    Example:
      >>> from fxflow import kernels
      >>> @kernels.kernel("n:rows -> n:rows", out=lambda x: x)
      ... def double(x, y, *, rows=kernels.tune(16, 64)):
      ...     y[...] = 2 * x[...]
      >>> double(fnp.ones(3))
      Array([2., 2., 2.], dtype=float32)
    """
    if not 1 <= len(candidates) <= MAX_CANDIDATES:
        raise ArgumentError(
            f"kernels.tune: give 1 to {MAX_CANDIDATES} candidates, got "
            f"{len(candidates)}"
        )
    for value in candidates:
        if not isinstance(value, int | float | str | bool | None):
            raise ArgumentError(
                "kernels.tune: candidates are numbers, strings, bools or None, got "
                f"{value!r}"
            )
    return Tune(tuple(candidates))


@boundary
def tuned(function: Callable[..., Any], *args: Any) -> list[Tuned]:
    """Measures the candidates of the kernels that a function calls, and keeps the best.

    The function is compiled with each candidate and run on the arguments; the slower
    half of the candidates is dropped again and again while the others run more often.
    The results must agree with those of the first candidate. The choice holds in this
    process for the kernels' types, and is written to the disk cache, from which later
    calls of `tuned` take it without measuring. Functions that were traced before are
    traced again (`clear_caches`).

    Args:
      function: a kernel, or a function that calls kernels, also after transformations.
      *args: its arguments: pytrees of arrays, not traced.

    Returns:
      For each kernel with candidates and each set of types what was chosen.

    Raises:
      ArgumentError: called while a function is traced, or no kernel has candidates.
      KernelError: a candidate gives other results than the first one.

    Example:
      >>> from fxflow import kernels
      >>> @kernels.kernel("n:rows -> n:rows", out=lambda x: x)
      ... def triple(x, y, *, rows=kernels.tune(16, 64)):
      ...     y[...] = 3 * x[...]
      >>> (found,) = kernels.tuned(triple, fnp.ones(100))
      >>> found.kernel, found.choice["rows"] in (16, 64)
      ('triple', True)
    """
    if not _is_outside(tree.leaves(args)):
        raise ArgumentError(
            "kernels.tuned: called while a function is traced: measure before, on "
            "arrays"
        )
    clear_caches()
    with _recording() as sites:
        make_graph(lambda *given: tree.leaves(function(*given)))(*args)
    if not sites:
        raise ArgumentError(
            "kernels.tuned: the function calls no kernel that has candidates "
            "(kernels.tune) for an argument that its caller leaves out"
        )
    found = []
    for site in sites.values():
        seconds: tuple[float, ...] = ()
        choice = _load(site)
        if choice is None:
            choice, seconds = _measured(site, function, args)
            _store(site, choice)
        _chosen[site.key] = choice
        found.append(Tuned(site.name, choice, seconds))
    clear_caches()
    return found


# -- sites -----------------------------------------------------------------------------


class Site(NamedTuple):
    """A kernel with candidates, called with operands of certain types.

    Attributes:
      name: of the kernel.
      key: hash of all that determines the choice.
      options: candidates of each argument.
    """

    name: str
    key: bytes
    options: tuple[tuple[str, tuple[Any, ...]], ...]

    def choices(self) -> list[Choice]:
        """Returns all combinations of candidates, the default first."""
        names = [name for name, _ in self.options]
        values = itertools.product(*(values for _, values in self.options))
        return [dict(zip(names, row, strict=True)) for row in values]


class _Local(threading.local):
    """What holds while `tuned` traces a function in this thread.

    Attributes:
      trial: the choice for a site that is measured.
      sites: those that a function calls, or None.
    """

    def __init__(self) -> None:
        self.trial: dict[bytes, Choice] = {}
        self.sites: dict[bytes, Site] | None = None


_local = _Local()
#: The choices of this process.
_chosen: dict[bytes, Choice] = {}


def defaults(values: Mapping[str, Any]) -> tuple[Choice, dict[str, Tune]]:
    """Returns static arguments with the first candidates, and which have candidates."""
    open_ = {k: v for k, v in values.items() if type(v) is Tune}
    return {**values, **{k: v.candidates[0] for k, v in open_.items()}}, open_


def choice_for(
    params: KernelParams,
    in_avals: Sequence[Aval],
    candidates: Mapping[str, Tune],
    operands: Sequence[Any],
    call: Callable[..., Any],
) -> Choice:
    """Returns the values of arguments that have candidates.

    Args:
      params: of the kernel with the first candidates.
      in_avals: types of its operands, captured arrays first.
      candidates: of each argument.
      operands: that it is called with.
      call: the kernel, called with the operands.
    """
    if not (_chosen or _local.trial or _local.sites is not None or _is_on()):
        return {}
    site = _site(params, in_avals, candidates)
    if _local.sites is not None:
        _local.sites.setdefault(site.key, site)
    found = _local.trial.get(site.key) or _chosen.get(site.key)
    if found is None and _is_on() and not _local.trial:
        found = _load(site)
        if found is None and _is_outside(operands):
            found, _ = _measured(site, call, tuple(operands))
            _store(site, found)
        if found is not None:
            _chosen[site.key] = found
    return found or {}


def _is_on() -> bool:
    return config.kernel_tuning


def _is_outside(values: Sequence[Any]) -> bool:
    """Returns whether nothing is being traced."""
    return isinstance(state.trace, EvalTrace) and not any(
        isinstance(x, Tracer) for x in values
    )


def _site(
    params: KernelParams, in_avals: Sequence[Aval], candidates: Mapping[str, Tune]
) -> Site:
    options = tuple((k, v.candidates) for k, v in candidates.items())
    name = params.graph.name
    site = Site(name, b"", options)
    count = len(site.choices())
    if count > MAX_CANDIDATES:
        raise ArgumentError(
            f"{name}: its arguments have {count} combinations of candidates, more than "
            f"{MAX_CANDIDATES}: leave some out"
        )
    described = [
        f"{params.graph}",
        f"{params.grid} {params.kinds} {params.aliases} {params.outs}",
        *(f"{b.shape} {b.index}" for b in params.blocks),
        ", ".join(map(str, in_avals)),
        repr(options),
        compiler_version(),
    ]
    device = buffers.default_placement().devices[0]
    key = cache.key("\n".join(described), b"kernel tuning 1", device)
    return site._replace(key=key)


@contextmanager
def _recording() -> Iterator[dict[bytes, Site]]:
    before, _local.sites = _local.sites, {}
    try:
        yield _local.sites
    finally:
        _local.sites = before


@contextmanager
def _trying(site: Site, choice: Choice) -> Iterator[None]:
    before, _local.trial = _local.trial, {**_local.trial, site.key: choice}
    try:
        yield
    finally:
        _local.trial = before


# -- choices on disk -------------------------------------------------------------------


def _load(site: Site) -> Choice | None:
    """Returns the choice that is on disk, if it is one of the candidates."""
    text = cache.load(site.key) if config.cache else None
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return next((c for c in site.choices() if c == found), None)


def _store(site: Site, choice: Choice) -> None:
    if config.cache:
        cache.store(site.key, json.dumps(choice).encode())


# -- measuring -------------------------------------------------------------------------


def _measured(
    site: Site, function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Choice, tuple[float, ...]]:
    """Returns the fastest choice, and the seconds of all."""
    choices = site.choices()
    runs = []
    expected: list[Any] = []
    for choice in choices:
        clear_caches()
        with _trying(site, choice):
            # A function of its own, which no earlier trace belongs to.
            run = jit(lambda *given: tree.leaves(function(*given))).lower(*args)
        compiled = run.compile()
        results = [np.asarray(x) for x in compiled(*args)]
        expected = expected or results
        _compare(site.name, choices[0], expected, choice, results)
        runs.append(compiled)
    seconds = [float("inf")] * len(choices)
    left = list(range(len(choices)))
    end, rounds = time.perf_counter() + SECONDS, 1
    while len(left) > 1:
        for _ in range(rounds):
            for i in left:
                seconds[i] = min(seconds[i], _seconds(runs[i], args))
            if time.perf_counter() > end:
                break
        left.sort(key=seconds.__getitem__)
        left = left[: 1 if time.perf_counter() > end else (len(left) + 1) // 2]
        rounds *= 2
    return choices[left[0]], tuple(seconds)


def _seconds(run: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    for x in run(*args):
        x.block_until_ready()
    return time.perf_counter() - start


def _compare(
    name: str,
    first: Choice,
    expected: Sequence[Any],
    choice: Choice,
    results: Sequence[Any],
) -> None:
    """Checks that a candidate gives the results of the first.

    Raises:
      KernelError: it does not.
    """
    for i, (x, y) in enumerate(zip(expected, results, strict=True)):
        if x.shape == y.shape and _close(x, y):
            continue
        raise KernelError(
            f"{name}: with {_text(choice)}, result {i} of the function differs from "
            f"that with {_text(first)}: the kernel's results must not depend on "
            "candidates of kernels.tune; kernels.check may find the mistake"
        )


def _close(x: Any, y: Any) -> bool:
    if not dtypes.is_inexact(x.dtype):
        return bool(near(x, y, 0.0, 0.0).all())
    finite = np.abs(x[np.isfinite(x)])
    scale = float(finite.max()) if finite.size else 1.0
    # Sums in blocks of another length round differently.
    rtol = 1e3 * float(dtypes.finfo(x.dtype).eps)
    return bool(near(x, y, rtol, max(rtol, 1e-12) * scale).all())


def _text(choice: Choice) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in choice.items())
