"""Dispatch, the short path of compiled calls: from arguments to a known program.

It flattens the arguments and looks the program up by structure, static arguments, and
interned types and placements; that of the last call is tried first. Whatever it does
not know goes the long way (`CachedCall._call`), which enters what it finds.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, ParamSpec, Self, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import Array, ArrayType, as_array, buffer_of, is_arraylike
from fxflow.core.arrays.array import require_alive
from fxflow.core.caches import Cache, Room, alive, on_clear
from fxflow.core.ir.references import Ref
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.execute import buffer_at
from fxflow.core.runtime.library import exact
from fxflow.core.source import interrupted, shorten
from fxflow.core.tree.flattening import failed
from fxflow.devices import RuntimeFailure
from fxflow.devices.callbacks import raise_original
from fxflow.devices.trees import flatten
from fxflow.transforms.arguments import Bindable, global_name
from fxflow.transforms.explain import Signature
from fxflow.transforms.stages import Compiled, Traced

# Signatures kept for a function.
MAX_TRACED = 512
# Bytes of programs kept for a function; and how many stay however large they are.
PROGRAM_BYTES, LEAST = 128 << 20, 32

P = ParamSpec("P")
R = TypeVar("R")

_get_type = attrgetter("_type")
_get_buffer = attrgetter("_buffer")


Runner = tuple[Callable[[Sequence[Array], list[Any]], Any], bool]
"""A function from the leaves of the arguments and their buffers to the result; and
whether it takes None for the buffer of an array in host memory, which it puts where it
is needed itself."""
Fast = Cache[Any, Runner]


class _Caches:
    """What was traced and compiled for one function and one set of options."""

    def __init__(self, fast: Fast | None = None) -> None:
        # From structure (and static arguments), types and placements.
        self.fast: Fast = Cache("calls of jit") if fast is None else fast
        # What the last call had: comparing is cheaper than hashing.
        self.last: tuple[Any, Any, Any] = (None, None, None)
        self.traced: Cache[Any, Traced] = Cache("traces", MAX_TRACED, by_options=True)
        # The key is a traced function and placements. A program knows what it was
        # traced from, so kept there it would be freed by the garbage collector alone.
        self.compiled: Cache[Any, Compiled] = Cache(
            "programs", MAX_TRACED, by_options=True, room=Room(PROGRAM_BYTES, LEAST)
        )
        #: How often it was traced, and for what the last times.
        self.traces = 0
        # Replaced, not changed: another thread may be looking through it.
        self.signatures: tuple[Signature, ...] = ()

    def find(self, key: Any, arg_types: list[ArrayType]) -> Any:
        """Returns the runner for a signature that is not the last one, or None."""
        runner = self.fast.get((key, *arg_types))
        if runner is not None:
            self.last = (arg_types, key, runner)
        return runner

    def keep_compiled(self, key: Any, compiled: Compiled) -> None:
        """Keeps a program; the oldest go when there are too many."""
        before = len(self.compiled)
        self.compiled.keep(key, compiled, compiled.program.nbytes)
        if len(self.compiled) <= before:
            self.forget_fast()  # it has those that were dropped, too

    def forget_fast(self) -> None:
        self.fast.clear()
        self.last = (None, None, None)

    def clear(self) -> None:
        self.forget_fast()
        self.traced.clear()
        self.compiled.clear()


# By function, not by `JitFunction`, so that `jit(f)(x)` in a loop compiles once; weak,
# so that programs are freed with the function.
_shared: weakref.WeakKeyDictionary[Any, dict[Any, _Caches]] = (
    weakref.WeakKeyDictionary()
)
_all_caches: weakref.WeakValueDictionary[int, _Caches] = weakref.WeakValueDictionary()


def _forget_fast() -> None:
    for known in alive(_all_caches):
        known.forget_fast()


on_clear(_forget_fast)


def new_caches(fast: Fast | None = None) -> _Caches:
    """Returns empty caches for one function.

    Args:
      fast: the table that its short path looks into, if that is another function's.
    """
    made = _Caches(fast)
    _all_caches[id(made)] = made
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


class CachedCall(Bindable[P, R]):
    """What is called by `jit` and `pmap`: the short path, and how arguments are split.

    A subclass has the long way, `_call`, which enters into `_caches.fast` what is to be
    found there the next time.
    """

    _arguments: tuple[Any, ...]
    _caches: _Caches
    _plain: bool
    _static_argnums: tuple[int, ...]
    _static_argnames: tuple[str, ...]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, compiled for the types of the arguments."""
        if state.trace is EVAL:
            caches = self._caches
            key: Any
            if self._plain:
                # No call without keywords has a list there.
                try:
                    leaves, key = flatten([args, kwargs] if kwargs else args)
                except Exception as error:
                    try:
                        raise failed(
                            error, [args, kwargs] if kwargs else args
                        ) from None
                    except Exception as told:
                        shorten(told)
                        raise
            else:
                leaves, treedef, statics = self._split(args, kwargs)
                key = (treedef, statics)
            try:
                try:
                    arg_types = [*map(_get_type, leaves)]
                except AttributeError:  # numbers, NumPy arrays
                    leaves = _as_arrays(leaves)
                    arg_types = [*map(_get_type, leaves)]
                # In one read: another thread may set it at any time.
                known, structure, runner = caches.last
                if arg_types != known or structure != key:
                    runner = caches.find(key, arg_types)
            except (AttributeError, TypeError):  # traced, not an array, not hashable
                runner = None
            if runner is not None:
                run, puts = runner
                try:
                    raw = [*map(_get_buffer, leaves)]
                except AttributeError:  # an array lives in host memory only
                    raw = [None if puts else buffer_of(leaf) for leaf in leaves]
                try:
                    return run(leaves, raw)  # type: ignore[no-any-return]
                except RuntimeFailure as error:
                    require_alive(leaves)
                    raise_original(error)
                    raise
        try:
            return self._call(args, kwargs)  # type: ignore[no-any-return]
        except Exception as error:
            shorten(error)
            raise
        except BaseException:
            interrupted()
            raise

    def __copy__(self) -> Self:
        return self  # as a function's copy is the function

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        """As its name, if that is in its module, or as what it was made of."""
        named = global_name(self)
        return (type(self), self._arguments) if named is None else named

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Any, tuple[Any, ...]]:
        """Returns leaves and structure of the dynamic arguments, and the static ones.

        These are `(name or position, see `exact`, value)` each.
        """
        count = len(args)
        fixed = [i + count if -count <= i < 0 else i for i in self._static_argnums]
        statics: list[tuple[Any, Any, Any]] = [
            (i, exact(args[i]), args[i]) for i in fixed if 0 <= i < count
        ]
        dynamic = [a for i, a in enumerate(args) if i not in fixed]
        if kwargs:
            names = self._static_argnames
            statics += [(k, exact(kwargs[k]), kwargs[k]) for k in names if k in kwargs]
            kwargs = {k: v for k, v in kwargs.items() if k not in names}
        leaves, treedef = tree.flatten((tuple(dynamic), kwargs))
        return leaves, treedef, tuple(statics)

    def _keep_fast(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        compiled: Compiled,
        arg_types: Sequence[Any],
        runner: Runner | None = None,
    ) -> None:
        """Enters the function from arrays to result into the fast table."""
        key: Any
        if self._plain:
            key = tree.structure([args, kwargs] if kwargs else args)
        else:
            _, treedef, statics = self._split(args, kwargs)
            key = (treedef, statics)
        self._caches.fast.keep(
            (key, *arg_types), runner or _runner(compiled, arg_types)
        )

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what is not known yet."""
        raise NotImplementedError


def _as_arrays(leaves: list[Any]) -> list[Any]:
    """Returns the leaves as arrays if all of them are array-like (or references)."""
    if all(type(x) is Array or type(x) is Ref or is_arraylike(x) for x in leaves):
        return [x if type(x) in (Array, Ref) else as_array(x) for x in leaves]
    return leaves


def _runner(compiled: Compiled, arg_types: Sequence[ArrayType]) -> Runner:
    """Returns the cheapest way to run a program.

    Args:
      compiled: the program.
      arg_types: of the leaves as they are given.
    """
    placements = compiled.program.placements[len(compiled.constants) :]
    moving = {
        i: placement
        for i, placement in zip(compiled.lowered.kept, placements, strict=True)
        if not arg_types[i].placement.same_layout(
            placement, len(arg_types[i].aval.physical.shape)
        )
    }
    run = _run_in_place(compiled)
    if not moving:
        return run, False

    def run_moved(leaves: Sequence[Array], raw: list[Any]) -> Any:
        there = [
            buffer_of(leaf) if buffer is None and i not in moving else buffer
            for i, (leaf, buffer) in enumerate(zip(leaves, raw, strict=True))
        ]
        for i, placement in moving.items():
            there[i] = buffer_at(leaves[i], placement)
        return run(leaves, there)

    return run_moved, True


def ref_runner(
    compiled: Compiled,
    arg_types: Sequence[ArrayType],
    slow: Callable[[Sequence[Any]], Any],
) -> Runner:
    """Returns the cheapest way to run a program that is given references.

    Args:
      compiled: the program.
      arg_types: of the leaves and captured references, with contents in their place.
      slow: takes the leaves where the captured references have other types by now.
    """
    traced = compiled.traced
    call = traced.call
    assert call is not None
    run, puts = _runner(compiled, arg_types)
    types = list(arg_types)
    unflatten = traced.out_tree.unflatten

    def run_refs(leaves: Sequence[Any], raw: list[Any]) -> Any:
        given = call.given(leaves)
        if [*map(_get_type, given)] != types:
            return slow(leaves)
        held = [None if puts else buffer_of(array) for array in given]
        return unflatten(call.store(leaves, run(given, held)))

    return run_refs, True


def _run_in_place(compiled: Compiled) -> Callable[[Sequence[Array], list[Any]], Any]:
    """Returns the function for leaves that are where the program takes them."""
    program = compiled.program
    run = program.run
    out_tree = compiled.traced.arrays.out_tree
    # The first placements are those of the constants.
    # The program keeps its constants, so their buffers are looked up once.
    constants = list(map(buffer_at, compiled.constants, program.placements))
    kept = compiled.lowered.kept  # in ascending order
    unflatten = out_tree.unflatten
    donated = [i for i, give in enumerate(compiled.traced.arrays.donated) if give]
    count = len(compiled.traced.arrays.in_avals)
    whole = not constants and kept == list(range(count))
    taken = set(kept)
    used = [i in taken for i in range(count)]
    if donated:

        def run_donated(leaves: Sequence[Array], raw: list[Any]) -> Any:
            given = [leaves[i] for i in donated]
            compiled.prepare_donation(given, leaves)
            outs = run(raw if whole else [*constants, *compress(raw, used)])
            for array in given:
                # The runtime owns the memory now; `_host` went in `prepare_donation`.
                del array._buffer
            return unflatten(outs)

        return run_donated
    if not whole:

        def run_some(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run([*constants, *compress(raw, used)]))

        return run_some
    # From here on the calls of `Program.run` are written out, to save a frame each.
    start, results = program.executable.launch, program.out_types
    handlers = [array_type.handler for array_type in results]
    if program.calls_python or len(results) != 1:

        def run_all(leaves: Sequence[Array], raw: list[Any]) -> Any:
            return unflatten(run(raw))

        return run_all
    (array_type,) = results
    # As in `Program.run`.
    new = object.__new__
    if tree.treedef_is_leaf(out_tree):

        def run_leaf(leaves: Sequence[Array], raw: list[Any]) -> Any:
            array = new(Array)
            (array._buffer,) = start(raw).consume_with_handlers(handlers)
            array._type = array_type
            return array

        return run_leaf

    def run_one(leaves: Sequence[Array], raw: list[Any]) -> Any:
        array = new(Array)
        (array._buffer,) = start(raw).consume_with_handlers(handlers)
        array._type = array_type
        return unflatten((array,))

    return run_one
