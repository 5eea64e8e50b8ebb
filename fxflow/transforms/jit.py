"""`jit`: a function compiled whole, once for each signature.

A known call takes the short path (`CachedCall.__call__`): from arguments, looked up by
their structure, static values, interned types and placements, to a program; that of
the last call is tried first. The long path (`JitFunction._call`) takes the first call,
traced values and anything unexpected, explains and checks, and enters what it finds.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, overload

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays import (
    Array,
    ArrayType,
    ShapeDtypeStruct,
    as_array,
    buffer_of,
    is_arraylike,
    typeof,
)
from fxflow.core.arrays.array import forget, read_only, require_alive
from fxflow.core.arrays.aval import RefType
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.caches import Cache, Room, alive, on_clear
from fxflow.core.interpreters.double_where import explained, pair_in
from fxflow.core.ir.discharge import require_distinct
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.references import Ref
from fxflow.core.ir.staging import placing_scopes, trace_flat
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.labels import leaf_labels
from fxflow.core.runtime.eager import EVAL, EvalTrace, options_of
from fxflow.core.runtime.execute import check_finite
from fxflow.core.runtime.library import exact
from fxflow.core.source import interrupted, name_of, shorten
from fxflow.core.tree.flattening import failed
from fxflow.devices import RuntimeFailure
from fxflow.devices.callbacks import original_error, raise_original
from fxflow.devices.compile import log_step
from fxflow.devices.meshes import current, note_mesh_read
from fxflow.devices.trees import flatten
from fxflow.errors import ArgumentError, DeletedArrayError, NonFiniteError
from fxflow.lax.calls import JitCall
from fxflow.lax.transfer import as_sharding, put_traced
from fxflow.transforms.arguments import (
    Bindable,
    Bound,
    FlatFunction,
    as_indices,
    as_names,
    frozen_shardings,
    global_name,
    prefixed_shardings,
    resolve_names,
    weakly,
)
from fxflow.transforms.explain import Signature, explain_retrace
from fxflow.transforms.stages import (
    Compiled,
    Lowered,
    Runner,
    Traced,
    ref_runner,
)

P = ParamSpec("P")
R = TypeVar("R")


# Signatures kept for a function.
MAX_TRACED = 512
# Bytes of programs kept for a function; and how many stay however large they are.
PROGRAM_BYTES, LEAST = 128 << 20, 32

_get_type = attrgetter("_type")
_get_buffer = attrgetter("_buffer")

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
                    try:
                        raw = [None if puts else buffer_of(leaf) for leaf in leaves]
                    except DeletedArrayError as error:
                        self._name_deleted(error, args, kwargs, leaves)
                        raise
                try:
                    return run(leaves, raw)  # type: ignore[no-any-return]
                except RuntimeFailure as error:
                    try:
                        if original_error(error) is None:
                            require_alive(leaves)
                    except DeletedArrayError as deleted:
                        self._name_deleted(deleted, args, kwargs, leaves)
                        raise
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

    def _name_deleted(
        self,
        error: DeletedArrayError,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: Sequence[Any],
    ) -> None:
        """Makes an error say which argument's memory was deleted."""
        fun = getattr(self, "__wrapped__", self)
        labels = leaf_labels(fun, args, kwargs)
        if len(labels) == len(leaves):  # no argument is static
            wrong = [i for i, leaf in enumerate(leaves) if leaf.is_deleted()]
            error.args = (f"{name_of(fun)}: argument {labels[wrong[0]]}: {error}",)
        shorten(error)

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
        self._caches.fast.keep((key, *arg_types), runner or compiled.runner(arg_types))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what is not known yet."""
        raise NotImplementedError


def _as_arrays(leaves: list[Any]) -> list[Any]:
    """Returns the leaves as arrays if all of them are array-like (or references)."""
    if all(type(x) is Array or type(x) is Ref or is_arraylike(x) for x in leaves):
        return [x if hasattr(x, "_type") else as_array(x) for x in leaves]
    return leaves


class JitOptions(NamedTuple):
    """The options of `jit`; see there.

    Attributes:
      in_shardings: may be a function here, of arguments and keyword arguments.
      moves: whether arguments that are committed elsewhere are moved.
    """

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    compiler_options: Mapping[str, Any] | None = None
    in_shardings: Any = None
    out_shardings: Any = None
    moves: bool = False


class JitFunction(CachedCall[P, R]):
    """A function compiled for each signature it is called with. Made by `jit`."""

    #: What programs take as it is.
    _kinds: tuple[type, ...] = (Array, Ref)

    def __init__(
        self, fun: Callable[P, R], given: JitOptions, fast: Fast | None = None
    ) -> None:
        functools.update_wrapper(self, fun)
        self._arguments = (fun, given)
        self._fun, self._name, self._given = fun, name_of(fun), given
        self._static_argnums, self._static_argnames = resolve_names(
            fun, given.static_argnums, given.static_argnames, "static"
        )
        self._donate_argnums, self._donate_argnames = resolve_names(
            fun, given.donate_argnums, given.donate_argnames, "donate"
        )
        both = set(self._static_argnums) & set(self._donate_argnums)
        if both or set(self._static_argnames) & set(self._donate_argnames):
            raise ArgumentError(
                f"jit: an argument of {self._name} is both static and donated: a "
                "static argument has no memory to donate"
            )
        self._plain = not (self._static_argnums or self._static_argnames)
        options = (
            self._static_argnums,
            self._static_argnames,
            self._donate_argnums,
            self._donate_argnames,
            given.keep_unused,
            given.inline,
            tuple(sorted((given.compiler_options or {}).items())),
            # A pmap's own function: it would keep the pmap, and that the caches, alive.
            None
            if callable(given.in_shardings)
            else frozen_shardings(given.in_shardings),
            frozen_shardings(given.out_shardings),
        )
        self._caches = caches_for(fun, options) if fast is None else new_caches(fast)

    def __repr__(self) -> str:
        return f"<jit of {self._name}>"

    # -- the long way ------------------------------------------------------------------

    def _arrays(self, bound: Bound) -> list[Any]:
        """Returns the leaves of the arguments as what the function takes."""
        return [
            leaf if isinstance(leaf, self._kinds) else as_array(leaf)
            for leaf in bound.leaves
        ]

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            args, kwargs = read_only((args, kwargs))
            return self._fun(*args, **kwargs)
        bound = Bound(self, args, kwargs)
        arrays = self._arrays(bound)
        traced = self._traced(bound, [a.aval for a in arrays])
        given = arrays
        arrays = [
            a if where is None else _placed_at(a, where, bound, i)
            for i, (a, where) in enumerate(
                zip(arrays, traced.in_shardings, strict=True)
            )
        ]
        eager = isinstance(state.trace, EvalTrace)
        # A program takes arrays, so where a value is traced the call is an operation.
        if traced.call is not None:
            require_distinct(
                [*arrays, *traced.call.captured], self._name, traced.call.labels
            )
        if not eager or any(isinstance(c, Tracer) for c in traced.consts):
            if self._given.inline:
                outs = traced.graph.evaluate(*traced.consts, *arrays)
            else:
                outs = JitCall.bind(*traced.consts, *arrays, graph=traced.graph)
            outs = [
                out if where is None else put_traced(out, where)
                for out, where in zip(outs, traced.out_shardings, strict=True)
            ]
            return traced.out_tree.unflatten(outs)
        for i, array in enumerate(arrays):
            if isinstance(array, Tracer):
                raise ArgumentError(
                    f"{self._name}: argument {bound.labels()[i]} is a leaked traced "
                    f"value. {array.origin()}"
                )
        if traced.call is not None:
            return self._call_with_refs(args, kwargs, traced, given, arrays)
        arg_types = [a._type for a in arrays]
        compiled = self._compiled(traced, arg_types)
        # The fast table's keys name neither options nor the current mesh.
        if state.trace is EVAL and not traced.reads_mesh:
            self._keep_fast(args, kwargs, compiled, [a._type for a in given])
        outs = compiled.run(arrays)
        for array, given_one, gives in zip(arrays, given, traced.donated, strict=True):
            # The program took a copy; donated is donated, whether one was needed or
            # not.
            if gives and array is not given_one:
                forget(given_one)
        if config.debug_nans or config.debug_infs:
            # The short path does not look at results.
            self._caches.forget_fast()
            self._check(outs, traced, arrays)
        return traced.out_tree.unflatten(outs)

    def _call_with_refs(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        traced: Traced,
        given: Sequence[Any],
        leaves: Sequence[Any],
    ) -> Any:
        """Runs a program with contents in place of references; see `RefCall`.

        Args:
          args: of the call.
          kwargs: of the call.
          traced: the function.
          given: the leaves.
          leaves: the same, each where `in_shardings` wants it.
        """
        call = traced.call
        assert call is not None

        def run(leaves: Sequence[Any]) -> tuple[Any, Compiled, list[ArrayType]]:
            arrays = call.given(leaves)
            types = [a._type for a in arrays]
            compiled = self._compiled(traced, types)
            outs = compiled.run(arrays)
            if config.debug_nans or config.debug_infs:
                self._caches.forget_fast()
                check_finite(self._name, outs)
            return traced.out_tree.unflatten(call.store(leaves, outs)), compiled, types

        keys = [a._type for a in given]
        result, compiled, types = run(leaves)
        moved = any(a is not b for a, b in zip(given, leaves, strict=True))
        if state.trace is EVAL and not traced.reads_mesh and not moved:
            runner = ref_runner(compiled, types, lambda leaves: run(leaves)[0])
            self._keep_fast(args, kwargs, compiled, keys, runner)
        return result

    def _traced(self, bound: Bound, avals: Sequence[Any]) -> Traced:
        known = self._caches.traced
        context = (
            state.axes,
            options_of(config),
            state.open_layouts,
            current.mesh,
            placing_scopes(),
        )
        key = (bound.treedef, bound.static_key(), tuple(avals), context)
        # What is traced within another trace may capture what belongs to that.
        if isinstance(state.trace, EvalTrace):
            traced = known.once(key, lambda: self._trace(bound, avals, key))
        else:
            traced = known.get(key) or self._trace(bound, avals, key)
        # A function that traces this call now depends on the mesh, too.
        if traced.reads_mesh:
            note_mesh_read()
        return traced

    def _trace(self, bound: Bound, avals: Sequence[Any], key: Any) -> Traced:
        caches = self._caches
        names, fun, function = bound.names(avals), self._fun, weakly(self._fun)
        # The caches belong to the function, so what is in them does not keep it.
        labels = functools.cache(lambda: names(function()))
        signature = Signature(
            labels, tuple(avals), bound.treedef, bound.static_named(), key[-1]
        )
        caches.traces += 1
        if caches.signatures:
            explain_retrace(self._name, signature, caches.signatures, caches.traces)
        caches.signatures = (*caches.signatures, signature)[-MAX_TRACED:]
        before = current.reads
        flat = FlatFunction(bound.partial(), bound.treedef, self._name, keywords=True)
        start = time.perf_counter()
        graph, consts = trace_flat(
            flat, avals, name=self._name, labels=lambda: names(fun)
        )
        if config.log_compiles:
            given = ", ".join(map(str, avals))
            log_step("traced", f"{self._name}({given})", start)
        traced = Traced(
            graph,
            consts,
            bound.treedef,
            flat.out_tree,
            name=self._name,
            labels_of=labels,
            donated=self._donations(bound, graph),
            keep_unused=self._given.keep_unused,
            options=self._given.compiler_options,
            in_shardings=tuple(self._argument_shardings(bound, avals)),
            out_shardings=tuple(self._result_shardings(flat.out_tree, graph)),
            reads_mesh=current.reads > before,
        )
        # What captures a tracer is of no use once the trace around it has ended.
        if not any(isinstance(c, Tracer) for c in consts):
            caches.traced.keep(key, traced)
        return traced

    def _donations(self, bound: Bound, graph: Graph) -> tuple[bool, ...]:
        """Returns for each leaf of the arguments whether it is donated."""
        return tuple(bound.donated())

    def _argument_shardings(self, bound: Bound, avals: Sequence[Any]) -> list[Any]:
        """Returns where each leaf of the arguments is to be, or None."""
        wanted = self._given.in_shardings
        if wanted is None:
            return [None] * len(bound.leaves)
        if callable(wanted):
            return list(wanted(bound.dynamic(), bound.named()))
        if bound.named():
            raise ArgumentError(
                f"{self._name}: in_shardings is for positional arguments; pass "
                f"{', '.join(sorted(bound.named()))} by position"
            )
        # `in_shardings` is a prefix of the tuple of arguments that are not static.
        structure = tree.structure(bound.dynamic())
        return prefixed_shardings(wanted, structure, avals, "in_shardings", self._name)

    def _result_shardings(self, structure: Any, graph: Graph) -> list[Any]:
        """Returns where each leaf of the result is to be, or None."""
        wanted, avals = self._given.out_shardings, graph.out_avals
        if wanted is None:
            return [None] * len(avals)
        return prefixed_shardings(wanted, structure, avals, "out_shardings", self._name)

    def _compiled(self, traced: Traced, arg_types: Sequence[ArrayType]) -> Compiled:
        # By the trace's identity: its own key was looked up before.
        key = (traced, *arg_types)

        def compile() -> Compiled:
            made = Lowered(traced, arg_types).compile()
            self._caches.keep_compiled(key, made)
            return made

        return self._caches.compiled.once(key, compile, patient=True)

    def _check(
        self, outs: Sequence[Array], traced: Traced, arrays: Sequence[Array]
    ) -> None:
        try:
            check_finite(self._name, outs)
        except NonFiniteError:
            # A donated argument's memory is freed, so the call cannot be repeated.
            if any(traced.donated):
                raise
            values = [*traced.consts, *arrays]
            try:
                # Again, one operation at a time: the error then names the operation.
                traced.graph.evaluate(*values)
            except NonFiniteError as error:
                pair = pair_in(traced.graph, values)
                if pair is None:
                    raise
                raise explained(error, *pair) from None
            raise

    # -- stages ------------------------------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces for arguments of these types (arrays or `ShapeDtypeStruct`s).

        Returns:
          The traced function, with its graph.
        """
        bound = Bound(self, args, kwargs)
        traced = self._traced(bound, [typeof(leaf) for leaf in bound.leaves])
        # A stage may outlive the function, which the labels need.
        traced.labels_of()
        return traced.with_shardings([_sharding_of(leaf) for leaf in bound.leaves])

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Traces and lowers for arguments of these types; see `Traced.lower`."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns shapes and dtypes of the result, without compiling."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Drops what was traced and compiled for this function."""
        self._caches.clear()
        self._caches.signatures = ()
        self._caches.traces = 0


def _sharding_of(leaf: Any) -> Any:
    """Returns where an argument insists on being, or lies in host memory, or None."""
    if isinstance(leaf, ShapeDtypeStruct):
        where = leaf.sharding
        return where if where is None else as_sharding(where, "jit: an argument")
    array_type = getattr(leaf, "_type", None)
    if isinstance(array_type, RefType):
        array_type = array_type.contents
    if array_type is None or not (
        array_type.committed or array_type.placement.offloaded
    ):
        return None
    return array_type.placement.sharding


def _placed_at(array: Array, where: Any, bound: Bound, i: int) -> Array:
    """Returns an argument laid out as `in_shardings` says."""
    if not isinstance(array, Tracer):
        array_type = array._type
        if (
            array_type.committed
            and not bound.jitted._given.moves
            and not array_type.placement.sharding.is_equivalent_to(where, array.ndim)
        ):
            raise ArgumentError(
                f"{bound.jitted._name}: argument {bound.labels()[i]} {array.aval} lies "
                f"on {array_type.placement}, but in_shardings says {where}; move it "
                "with fxflow.device_put, or leave its sharding out (None)"
            )
    out: Array = put_traced(array, where)
    return out


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Compiles a function with XLA, once for each signature it is called with.

    The function is traced: run once on values that have a type (shape and dtype) but no
    data. It must be pure; prints and other side effects happen when tracing only.

    Args:
      fun: function of arrays or pytrees of them. Left out, `jit` returns a decorator.
      static_argnums: positions of arguments that are Python values, not arrays. They
        must be hashable; each new value is a new signature. Values are the same if they
        are equal (`==`) and of one type, where 0.0 and -0.0 differ; what is in tuples,
        frozen sets and frozen dataclasses likewise.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may reuse. The
        caller must not use them any more.
      donate_argnames: names of such arguments.
      keep_unused: whether the compiled program takes arguments that it does not need.
      inline: whether a call inside another traced function leaves no call in its graph.
      compiler_options: XLA's options by name, as in
        `{"xla_cpu_enable_fast_math": True}`.
      in_shardings: where the positional arguments are to be: `Sharding`s or
        `PartitionSpec`s over the current mesh, a pytree prefix of their tuple. None:
        where they are. Arguments that are committed elsewhere are an error. A kind of
        memory counts: arguments in host memory enter the program there.
      out_shardings: where the results are to be, likewise. None: the compiler decides.
        With `memory_kind="pinned_host"` they come out in host memory.

    Returns:
      A function of the same arguments, with methods `trace`, `lower`, `eval_shape` and
      `clear_cache`.

    Raises:
      ArgumentError: an option names no parameter, or an argument is not an array.
      NonHashableStaticError: a static argument cannot be hashed.
      DonationError: a donated argument cannot be reused.

    Example:
      >>> @jit
      ... def loss(x):
      ...     return fnp.sum(x**2)
      >>> float(loss(fnp.array([1.0, 2.0])))
      5.0
    """
    given = JitOptions(
        as_indices(static_argnums, "static_argnums"),
        as_names(static_argnames, "static_argnames"),
        as_indices(donate_argnums, "donate_argnums"),
        as_names(donate_argnames, "donate_argnames"),
        keep_unused,
        inline,
        dict(compiler_options) if compiler_options else None,
        in_shardings,
        out_shardings,
    )

    def decorate(function: Callable[..., Any]) -> JitFunction[..., Any]:
        require_callable(function, "jit")
        return JitFunction(function, given)

    return decorate if fun is None else decorate(fun)
