"""The short path of compiled calls: from arguments to a known program.

It flattens the arguments and looks the program up by structure, static arguments, and
interned types and places; that of the last call is tried first. Whatever it does not
know goes the long way (`CachedCall._call`), which enters what it finds.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays.array import Array, buffer_of, require_alive
from fxflow.core.arrays.array_type import Placed, placed_on
from fxflow.core.arrays.convert import as_array, is_arraylike
from fxflow.core.caches import Cache, on_clear
from fxflow.core.ir.trace import state
from fxflow.core.once import Turn
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.execute import buffer_at
from fxflow.core.source import interrupted, without_own_frames
from fxflow.core.tree.flattening import failed
from fxflow.devices import RuntimeFailure
from fxflow.devices.callbacks import raise_original
from fxflow.devices.trees import flatten
from fxflow.transforms.arguments import global_name
from fxflow.transforms.explain import Signature
from fxflow.transforms.stages import Compiled, Traced

# Signatures kept for a function, each with a program or more of some 200 KB.
MAX_TRACED = 512

_get_placed = attrgetter("_placed")
_get_buffer = attrgetter("_buffer")


class _Caches:
    """What was traced and compiled for one function and one set of options."""

    __slots__ = (
        "__weakref__",
        "compiled",
        "fast",
        "last",
        "signatures",
        "traced",
        "traces",
        "turns",
    )

    def __init__(self) -> None:
        # From structure (and static arguments), types and places to a function of the
        # leaves and their buffers.
        self.fast: Cache[Any, Callable[[Sequence[Array], list[Any]], Any]]
        self.fast = Cache("calls of jit")
        # What the last call had: comparing is cheaper than hashing.
        self.last: tuple[Any, Any, Any] = (None, None, None)
        self.traced: Cache[Any, Traced] = Cache("traces", MAX_TRACED, by_options=True)
        # Of a traced function and places. A program knows what it was traced from, so
        # kept there it would be freed by the garbage collector alone.
        self.compiled: Cache[Any, Compiled] = Cache(
            "programs", MAX_TRACED, by_options=True
        )
        # Which threads are tracing or compiling, and what.
        self.turns: dict[Any, Turn] = {}
        #: How often it was traced, and for what the last times.
        self.traces = 0
        self.signatures: deque[Signature] = deque(maxlen=MAX_TRACED)

    def find(self, key: Any, placeds: list[Placed]) -> Any:
        """Returns the function for a signature that is not the last one, or None."""
        run = self.fast.get((key, *placeds))
        if run is not None:
            self.last = (placeds, key, run)
        return run

    def keep_traced(self, key: Any, traced: Traced) -> None:
        """Keeps what was traced for a signature; the oldest go when it is too much."""
        self.traced.keep(key, traced)

    def keep_compiled(self, key: Any, compiled: Compiled) -> None:
        """Keeps a program; the oldest go when there are too many."""
        if len(self.compiled) >= MAX_TRACED:
            self.forget_fast()  # it has those that will go too
        self.compiled.keep(key, compiled)

    def forget_fast(self) -> None:
        self.fast.clear()
        self.last = (None, None, None)

    def clear(self) -> None:
        self.forget_fast()
        self.traced.clear()
        self.compiled.clear()


_shared: weakref.WeakKeyDictionary[Any, dict[Any, _Caches]] = (
    weakref.WeakKeyDictionary()
)
_all_caches: weakref.WeakSet[_Caches] = weakref.WeakSet()


def _forget_fast() -> None:
    for known in list(_all_caches):
        known.forget_fast()


on_clear(_forget_fast)


def new_caches() -> _Caches:
    """Returns empty caches for one function."""
    made = _Caches()
    _all_caches.add(made)
    return made


def caches_for(fun: Any, options: Any) -> _Caches:
    """Returns the caches that all `jit(fun)` with the same options share."""
    try:
        table = _shared.setdefault(fun, {})
        caches = table.get(options)
    except TypeError:  # not hashable, or no weak references
        caches, table = None, {}
    if caches is None:
        caches = table[options] = new_caches()
    return caches


class CachedCall:
    """What is called by `jit` and `pmap`: the short path, and how arguments are split.

    A subclass has the long way, `_call`, which enters into `_caches.fast` what is to be
    found there the next time.
    """

    _arguments: tuple[Any, ...]
    _caches: _Caches
    _plain: bool
    _static_argnums: tuple[int, ...]
    _static_argnames: tuple[str, ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, compiled for the types and places of the arguments."""
        if state.trace is EVAL:
            caches = self._caches
            if self._plain:
                # No call without keywords has a list there.
                try:
                    leaves, key = flatten([args, kwargs] if kwargs else args)
                except Exception as error:
                    raise failed(error, [args, kwargs] if kwargs else args) from None
            else:
                leaves, treedef, statics = self._split(args, kwargs)
                key = (treedef, statics)
            try:
                try:
                    placeds = [*map(_get_placed, leaves)]
                except AttributeError:  # numbers, NumPy arrays
                    leaves = _as_arrays(leaves)
                    placeds = [*map(_get_placed, leaves)]
                known, structure, run = caches.last
                if placeds != known or structure != key:
                    run = caches.find(key, placeds)
            except (AttributeError, TypeError):  # traced, not an array, not hashable
                run = None
            if run is not None:
                try:
                    raw = [*map(_get_buffer, leaves)]
                except AttributeError:  # an array lives in host memory only
                    moves = getattr(run, "moves", False)
                    raw = [None if moves else buffer_of(leaf) for leaf in leaves]
                try:
                    return run(leaves, raw)
                except RuntimeFailure as error:
                    require_alive(leaves)
                    raise_original(error)
                    raise
        try:
            return self._call(args, kwargs)
        except Exception as error:
            error.__traceback__ = without_own_frames(error.__traceback__)
            raise
        except BaseException:
            interrupted()
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __copy__(self) -> CachedCall:
        return self  # as a function's copy is the function

    def __deepcopy__(self, memo: Any) -> CachedCall:
        return self

    def __reduce__(self) -> Any:
        """As its name, if that is in its module, or as what it was made of."""
        named = global_name(self)
        return (type(self), self._arguments) if named is None else named

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Any, tuple[Any, ...]]:
        """Returns leaves and structure of the dynamic arguments, and the static ones.

        These are `(name or position, type, value)` each.
        """
        count = len(args)
        fixed = [i + count if -count <= i < 0 else i for i in self._static_argnums]
        statics: list[tuple[Any, type, Any]] = [
            (i, type(args[i]), args[i]) for i in fixed if 0 <= i < count
        ]
        dynamic = [a for i, a in enumerate(args) if i not in fixed]
        if kwargs:
            names = self._static_argnames
            statics += [(k, type(kwargs[k]), kwargs[k]) for k in names if k in kwargs]
            kwargs = {k: v for k, v in kwargs.items() if k not in names}
        leaves, treedef = tree.flatten((tuple(dynamic), kwargs))
        return leaves, treedef, tuple(statics)

    def _keep_fast(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        compiled: Compiled,
        placeds: Sequence[Placed],
    ) -> None:
        """Enters the function from arrays to result into the fast table."""
        key: Any
        if self._plain:
            key = tree.structure([args, kwargs] if kwargs else args)
        else:
            _, treedef, statics = self._split(args, kwargs)
            key = (treedef, statics)
        self._caches.fast.keep((key, *placeds), _fast_runner(compiled, placeds))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what is not known yet."""
        raise NotImplementedError


def _as_arrays(leaves: list[Any]) -> list[Any]:
    """Returns the leaves as arrays if all of them are array-like."""
    if all(type(x) is Array or is_arraylike(x) for x in leaves):
        return [x if type(x) is Array else as_array(x) for x in leaves]
    return leaves


def _fast_runner(
    compiled: Compiled, placeds: Sequence[Placed]
) -> Callable[[Sequence[Array], list[Any]], Any]:
    """Returns the cheapest function of the leaves and their buffers.

    Args:
      compiled: the program.
      placeds: types and places of the leaves as they are given.
    """
    program = compiled.program
    run = program.run
    out_tree = compiled.out_tree
    places = program.placements
    held = len(compiled.constants)
    constants = [
        buffer_at(c, place)
        for c, place in zip(compiled.constants, places[:held], strict=True)
    ]
    kept = compiled.lowered.kept
    targets = dict(zip(kept, places[held:], strict=True))
    moving = [
        (i, place)
        for i, place in targets.items()
        if not placeds[i].placement.same_layout(
            place, len(placeds[i].aval.physical.shape)
        )
    ]
    if moving:
        stay = [
            placed_on(p.aval, targets.get(i, p.placement), p.committed)
            for i, p in enumerate(placeds)
        ]
        run_there = _fast_runner(compiled, stay)

        def run_moved(leaves: Sequence[Array], raw: list[Any]) -> Any:
            there = [
                buffer_of(leaf) if buffer is None and i not in goals else buffer
                for i, (leaf, buffer) in enumerate(zip(leaves, raw, strict=True))
            ]
            for i, place in moving:
                there[i] = buffer_at(leaves[i], place)
            return run_there(leaves, there)

        # What has no buffer yet gets one where it is needed.
        run_moved.moves = True  # type: ignore[attr-defined]
        goals = dict(moving)
        return run_moved
    unflatten = out_tree.unflatten
    donated = [i for i, give in enumerate(compiled.lowered.traced.donated) if give]
    whole = not constants and kept == list(range(len(placeds)))
    if donated:

        def run_donated(leaves: Sequence[Array], raw: list[Any]) -> Any:
            given = [leaves[i] for i in donated]
            compiled.prepare_donation(given, leaves)
            outs = run(raw if whole else [*constants, *[raw[i] for i in kept]])
            for array in given:
                del array._buffer
            return unflatten(outs)

        return run_donated
    if not whole:

        def run_some(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run([*constants, *[raw[i] for i in kept]]))

        return run_some
    start, results = program.executable.launch, program.out_placeds
    handlers = [placed.handler for placed in results]
    if program.calls_python or len(results) != 1:

        def run_all(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run(raw))

        return run_all
    (placed,) = results
    if tree.treedef_is_leaf(out_tree):

        def run_leaf(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return Array(start(raw).consume_with_handlers(handlers)[0], placed)

        return run_leaf

    def run_one(leaves: Sequence[Array], raw: list[Any]) -> Any:
        return unflatten(
            (Array(start(raw).consume_with_handlers(handlers)[0], placed),)
        )

    return run_one
