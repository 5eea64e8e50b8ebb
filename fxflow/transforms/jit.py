"""`jit`: a function compiled whole, once for each signature.

A call that is known takes the short path (`dispatch`). The long one is here: the first
call, traced values, anything unexpected; it also explains and checks.
"""

from __future__ import annotations

import functools
import inspect
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays import Array, ArrayType, ShapeDtypeStruct, typeof
from fxflow.core.arrays.array import (
    as_array,
    forget,
    is_arraylike,
    not_an_array,
    read_only,
)
from fxflow.core.arrays.aval import RefType
from fxflow.core.boundary import boundary
from fxflow.core.ir.discharge import require_distinct
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.references import Ref
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.labels import leaf_labels, parameter_names, signature_of
from fxflow.core.runtime.eager import EVAL, EvalTrace, options_of
from fxflow.core.runtime.execute import check_finite
from fxflow.core.source import name_of
from fxflow.devices.compile import log_step
from fxflow.devices.meshes import current, note_mesh_read
from fxflow.errors import ArgumentError, NonFiniteError, NonHashableStaticError
from fxflow.lax.calls import JitCall
from fxflow.lax.transfer import as_sharding, is_sharding_leaf, put_traced, require_fit
from fxflow.transforms.arguments import (
    FlatFunction,
    as_indices,
    as_names,
    require_callable,
    with_fixed,
)
from fxflow.transforms.dispatch import (
    MAX_TRACED,
    CachedCall,
    Fast,
    caches_for,
    new_caches,
    ref_runner,
)
from fxflow.transforms.explain import Signature, explain_retrace
from fxflow.transforms.stages import Compiled, Lowered, Traced

P = ParamSpec("P")
R = TypeVar("R")


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
            None if callable(given.in_shardings) else _frozen(given.in_shardings),
            _frozen(given.out_shardings),
        )
        self._caches = caches_for(fun, options) if fast is None else new_caches(fast)

    def __repr__(self) -> str:
        return f"<jit of {self._name}>"

    # -- the long way ------------------------------------------------------------------

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            args, kwargs = read_only((args, kwargs))
            return self._fun(*args, **kwargs)
        bound = _Bound(self, args, kwargs)
        arrays: list[Any] = [
            leaf if isinstance(leaf, Ref) else as_array(leaf) for leaf in bound.leaves
        ]
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

    def _traced(self, bound: _Bound, avals: Sequence[Any]) -> Traced:
        known = self._caches.traced
        context = (state.axes, options_of(config), state.open_layouts, current.mesh)
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

    def _trace(self, bound: _Bound, avals: Sequence[Any], key: Any) -> Traced:
        caches = self._caches
        labels = bound.later_labels(avals)
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
        graph, consts = trace_flat(flat, avals, name=self._name, labels=labels)
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
            out_shardings=tuple(
                _prefixed(
                    self._given.out_shardings,
                    flat.out_tree,
                    graph.out_avals,
                    "out_shardings",
                    self._name,
                )
            ),
            reads_mesh=current.reads > before,
        )
        # What captures a tracer is of no use once the trace around it has ended.
        if not any(isinstance(c, Tracer) for c in consts):
            caches.traced.keep(key, traced)
        return traced

    def _donations(self, bound: _Bound, graph: Graph) -> tuple[bool, ...]:
        """Returns for each leaf of the arguments whether it is donated."""
        return tuple(bound.donated())

    def _argument_shardings(self, bound: _Bound, avals: Sequence[Any]) -> list[Any]:
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
        return _prefixed(wanted, structure, avals, "in_shardings", self._name)

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
            if not any(traced.donated):
                # Again, one operation at a time: the error then names the operation.
                traced.graph.evaluate(*traced.consts, *arrays)
            raise

    # -- stages ------------------------------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces for arguments of these types (arrays or `ShapeDtypeStruct`s).

        Returns:
          The traced function, with its graph.
        """
        bound = _Bound(self, args, kwargs)
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
        return leaf.sharding
    array_type = getattr(leaf, "_type", None)
    if isinstance(array_type, RefType):
        array_type = array_type.contents
    if array_type is None or not (
        array_type.committed or array_type.placement.offloaded
    ):
        return None
    return array_type.placement.sharding


def _hashable_instead(value: Any) -> str:
    """Says what to do about a static argument that cannot be hashed."""
    if isinstance(value, list):
        return "pass a tuple"
    if isinstance(value, set):
        return "pass a frozenset"
    if isinstance(value, dict):
        return (
            "pass its items as a tuple, tuple(d.items()), or make it an ordinary "
            "argument if its values are arrays or numbers"
        )
    if is_arraylike(value):
        return "make it an ordinary argument, since it is an array"
    return "give its class __hash__ and __eq__, or make it an ordinary argument"


class _Bound:
    """The arguments of one call, static ones apart."""

    def __init__(
        self,
        jitted: JitFunction[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.jitted, self.args, self.kwargs = jitted, args, kwargs
        self.leaves, self.treedef, self.statics = jitted._split(args, kwargs)
        static = {name for name, _, _ in self.statics}
        self.positions = [i for i in range(len(args)) if i not in static]
        for i, leaf in enumerate(self.leaves):
            if type(leaf) is Array:
                continue
            if not is_arraylike(leaf) and not isinstance(leaf, ShapeDtypeStruct | Ref):
                label = self.labels()[i]
                what = f"{jitted._name}: argument {label} of a jitted function is"
                error = not_an_array(leaf, what, label)
                if isinstance(leaf, str) or callable(leaf):
                    raise ArgumentError(f"{error}, or make it static: static_argnames")
                raise error

    def static_key(self) -> tuple[Any, ...]:
        """Returns the static arguments as part of a cache key."""
        try:
            # The tuple at once; which one it is matters only for the message.
            hash(self.statics)
        except TypeError:
            for name, value in self.static_named().items():
                try:
                    hash(value)
                except TypeError:
                    raise NonHashableStaticError(
                        f"{self.jitted._name}: static argument {name} of type "
                        f"{type(value).__name__} cannot be hashed: "
                        f"{_hashable_instead(value)}"
                    ) from None
            raise
        return self.statics

    def static_named(self) -> dict[str, Any]:
        """Returns the static arguments by name."""
        if not self.statics:
            return {}
        names = parameter_names(self.jitted._fun, len(self.args))
        return {names[k] if isinstance(k, int) else k: v for k, _, v in self.statics}

    def partial(self) -> Callable[..., Any]:
        """Returns the function of the other arguments."""
        fun = self.jitted._fun
        named = {k: v for k, _, v in self.statics if isinstance(k, str)}
        fixed = {k: v for k, _, v in self.statics if isinstance(k, int)}
        positions = sorted(fixed)
        partial = functools.partial(fun, **named) if named else fun
        return with_fixed(partial, positions, [fixed[i] for i in positions])

    def dynamic(self) -> tuple[Any, ...]:
        """Returns the positional arguments that are not static."""
        return tuple(self.args[i] for i in self.positions)

    def named(self) -> dict[str, Any]:
        """Returns the keyword arguments that are not static."""
        static = {name for name, _, _ in self.statics}
        return {k: v for k, v in self.kwargs.items() if k not in static}

    def labels(self) -> list[str]:
        """Returns the names of the leaves."""
        fun = self.jitted._fun
        return leaf_labels(fun, self.args, self.named(), self.positions)

    def later_labels(self, avals: Sequence[Any]) -> Callable[[], list[str]]:
        """Returns a function that gives the names of the leaves, once a message asks.

        It keeps neither the arguments alive nor the function, whose caches have it.

        Args:
          avals: types of the leaves, which stand for them.
        """
        fun = _weakly(self.jitted._fun)
        treedef, positions, count = self.treedef, self.positions, len(self.args)

        @functools.cache
        def labels() -> list[str]:
            dynamic, named = treedef.unflatten(avals)
            args = dict(zip(positions, dynamic, strict=True))
            given = [args.get(i) for i in range(count)]
            return leaf_labels(fun(), given, named, positions)

        return labels

    def donated(self) -> list[bool]:
        """Returns which leaves are donated."""
        count, names = len(self.args), self.jitted._donate_argnames
        give = {i % count if i < 0 else i for i in self.jitted._donate_argnums}
        if not give and not names:
            return [False] * len(self.leaves)
        named = self.named()
        flags = [i in give for i in self.positions], {k: k in names for k in named}
        return tree.broadcast_prefix(flags, ([*self.dynamic()], named))


def _weakly(fun: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(fun)
    except TypeError:  # some callable objects cannot be referred to weakly
        return lambda: fun


def _frozen(shardings: Any) -> Any:
    if shardings is None:
        return None
    leaves, treedef = tree.flatten(shardings, is_sharding_leaf)
    try:
        hash(tuple(leaves))
    except TypeError:
        raise ArgumentError(
            "jit: in_shardings and out_shardings are Shardings, specs, None, or trees "
            f"of them, got {shardings!r}"
        ) from None
    return (tuple(leaves), treedef)


def _prefixed(
    wanted: Any, structure: Any, avals: Sequence[Any], what: str, name: str
) -> list[Any]:
    """Returns a sharding or None for each leaf of a structure.

    Args:
      wanted: pytree of shardings, specs or None: a prefix.
      structure: of the arguments or the results.
      avals: their types.
      what: `in_shardings` or `out_shardings`.
      name: of the function.
    """
    count = structure.num_leaves
    if wanted is None:
        return [None] * count
    label = f"jit({name}): {what}"
    full = structure.unflatten(range(count))
    given = tree.broadcast_prefix(wanted, full, is_leaf=is_sharding_leaf, name=label)
    shardings = [None if w is None else as_sharding(w, label) for w in given]
    for where, aval in zip(shardings, avals, strict=True):
        if where is not None:
            require_fit(where, aval, label)
    return shardings


def _placed_at(array: Array, where: Any, bound: _Bound, i: int) -> Array:
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


def resolve_names(
    fun: Any, argnums: Sequence[int], argnames: Sequence[str], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns positions and names of the same arguments, completed from each other.

    Args:
      fun: the function.
      argnums: positions.
      argnames: names.
      what: `static` or `donate`, for messages.

    Raises:
      ArgumentError: the function has no such parameter.
    """
    if not (argnums or argnames):
        return (), ()
    signature = signature_of(fun)
    if signature is None:
        return tuple(argnums), tuple(argnames)
    parameters = list(signature.parameters.values())
    positional = [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters]
    for name in argnames:
        if name not in names and not keywords:
            raise ArgumentError(
                f"jit: {what}_argnames={name!r} is no parameter of {name_of(fun)}, "
                f"which has {', '.join(names) or 'none'}"
            )
    for index in argnums:
        if not variadic and not -len(positional) <= index < len(positional):
            raise ArgumentError(
                f"jit: {what}_argnums={index} is out of range for {name_of(fun)}, "
                f"which has {len(positional)} positional parameters"
            )
    numbers = set(argnums) | {
        positional.index(name) for name in argnames if name in positional
    }
    named = set(argnames) | {
        positional[i]
        for i in numbers
        if -len(positional) <= i < len(positional)
        and signature.parameters[positional[i]].kind
        # A positional-only parameter cannot be called by name.
        is not inspect.Parameter.POSITIONAL_ONLY
    }
    return tuple(sorted(numbers)), tuple(sorted(named))


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
