"""Configuration: a few typed options, each with a default and an environment name.

This is layer 0: it imports the standard library alone, so every other layer may read
it. An option is read as a plain attribute (``config.x64``), set for the whole process
by assignment (``config.x64 = True``) and set for one thread and one block by
``with config.override(x64=True):``.

Why it is built on `threading.local`: options are read on the path of every operation.
Each thread keeps the values that hold *there* in its own dictionary, so a read is one
attribute look-up in C; the price is paid by the rare write, which visits the
dictionaries of all threads.

What an `override` sets stands in a context variable, since the tasks of an event loop
take turns in one thread. While one is in force anywhere in a thread, the option is not
in the thread's dictionary, so that a read comes to `Option.__get__`, which asks the
context of the caller.
"""

from __future__ import annotations

import contextvars
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Generic, TypeVar, cast, overload

__all__ = ["Config", "Option", "config"]

T = TypeVar("T")

_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE = frozenset({"0", "false", "no", "off", "n", "f", ""})


# -- parsers: what may be assigned, and how an environment string is read --------------


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.strip().lower() in _TRUE:
            return True
        if value.strip().lower() in _FALSE:
            return False
    elif value in (0, 1):
        return bool(value)
    raise ValueError("expected a boolean (True, False, or one of 1 0 true false)")


def _text(value: object) -> str:
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value)).strip()
    raise ValueError("expected a string")


def _count(value: object) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise ValueError("expected an integer") from None
    if isinstance(value, int) and not isinstance(value, bool):
        if value >= 0:
            return value
        raise ValueError("expected an integer that is not negative")
    raise ValueError("expected an integer")


def _seconds(value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError("expected a number of seconds") from None
    if not 0 < number < float("inf"):
        raise ValueError("expected a positive, finite number of seconds")
    return number


_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _size(value: object) -> int:
    """A number of bytes; strings may end in K, M, G, T (powers of 1024)."""
    if isinstance(value, str):
        text = value.strip().lower().removesuffix("ib").removesuffix("b")
        factor = _SIZES.get(text[-1:], 1)
        try:
            return _count(int(float(text.rstrip("kmgt")) * factor))
        except (ValueError, OverflowError):
            raise ValueError("expected a number of bytes such as 2G") from None
    return _count(value)


def _one_of(*names: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise ValueError(f"expected one of {', '.join(map(repr, names))}")

    return parse


def _optional(parse: Callable[[object], T]) -> Callable[[object], T | None]:
    def parse_optional(value: object) -> T | None:
        return None if value is None or value in ("", "none", "None") else parse(value)

    return parse_optional


_PASSES = (
    "join_scatters",
    "scatter_sums",
    "pick_products",
    "fuse_rows",
    "flatten_products",
    "split_loops",
    "recompute_residuals",
    "pack_products",
    "contract_convolutions",
    "compile_kernels",
)


def _passes(value: object) -> str:
    """`all`, `none`, or names of passes with commas between them."""
    text = _text(value)
    named = {part.strip() for part in text.split(",")}
    if named == set(_PASSES) or text == "all":
        return "all"
    if text in ("", "none"):
        return "none"
    if not named <= set(_PASSES):
        raise ValueError(f"expected all, none, or some of {', '.join(_PASSES)}")
    return ",".join(name for name in _PASSES if name in named)


_LEVEL = _one_of("allow", "log", "disallow", "log_explicit", "disallow_explicit")


# -- the machinery ---------------------------------------------------------------------


class Option(Generic[T]):
    """One option: its default, how a value is checked, and what it does.

    It is a descriptor *without* ``__set__``: the values of a thread stand in the
    instance dictionary and win, so a read does not pass through Python, unless an
    ``override`` of the option is in force in the thread. (For the
    same reason `Config` has no ``__getattr__``: its mere presence doubles the cost of
    every read. Python itself suggests the near name when a misspelt one is read.)
    """

    __slots__ = ("default", "doc", "environment", "name", "parse")

    def __init__(self, default: T, parse: Callable[[object], T], doc: str) -> None:
        self.default: T = default
        self.parse: Callable[[object], T] = parse
        self.doc: str = doc
        self.name: str = ""
        self.environment: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.environment = name, f"FXFLOW_{name.upper()}"

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Option[T] | T:
        if instance is None:
            return self
        thread = threading.get_ident()
        for value in reversed(_overrides.get().get(self.name, ())):
            if value.thread == thread and value.in_force:
                found: T = value.value
                return found
        return cast(T, _process_values.get(self.name, self.default))

    def check(self, value: object, source: str) -> T:
        """Returns `value` as this option keeps it.

        Raises:
          ValueError: the value is not allowed; the message names `source`.
        """
        try:
            return self.parse(value)
        except ValueError as error:
            raise ValueError(f"{source}: {error}; got {value!r}") from None

    def initial(self) -> T:
        """The value at the start of the process: the environment's or the default."""
        text = os.environ.get(self.environment)
        if text is None:
            return self.default
        return self.check(text, f"environment variable {self.environment}")


class _Value:
    """What an override sets an option to, until its block is left.

    A task that was started within the block has it too, for as long.
    """

    __slots__ = ("in_force", "thread", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.thread = threading.get_ident()
        self.in_force = True


_overrides: contextvars.ContextVar[dict[str, tuple[_Value, ...]]] = (
    contextvars.ContextVar("fxflow_overrides", default={})  # noqa: B039 never changed
)


class _ThreadValues:
    """The option values of one thread, and how often it overrides each."""

    __slots__ = ("__weakref__", "overrides", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.overrides: dict[str, int] = {}


_lock = threading.RLock()
_process_values: dict[str, Any] = {}
_threads: weakref.WeakSet[_ThreadValues] = weakref.WeakSet()
_listeners: dict[str, list[Callable[[Any], None]]] = {}
_guards: dict[str, list[Callable[[Any], None]]] = {}


class Config(threading.local):
    """All options of fxflow; use the one instance, ``fxflow.config``.

    Example:
      >>> from fxflow._config import config
      >>> with config.override(x64=True):
      ...     config.x64
      True
    """

    # -- numbers -----------------------------------------------------------------------
    x64: Option[bool] = Option(
        False,
        _boolean,
        "Make 64-bit dtypes the default for Python scalars, lists and NumPy data.",
    )
    explicit_x64_dtypes: Option[str] = Option(
        "allow",
        _one_of("allow", "truncate"),
        "What a 64-bit dtype that is asked for by name means without x64: itself, or "
        "the 32-bit one of its kind.",
    )
    numpy_dtype_promotion: Option[str] = Option(
        "standard",
        _one_of("standard", "strict"),
        "Whether arrays of different dtypes that you pass to one function combine: "
        '"strict" refuses them, and lets only Python numbers take the dtype of arrays.',
    )
    numpy_rank_promotion: Option[str] = Option(
        "allow",
        _one_of("allow", "warn", "raise"),
        "What becomes of operands of different rank (but 0) that you let broadcast.",
    )
    default_matmul_precision: Option[str | None] = Option(
        None,
        _optional(
            _one_of(
                "default",
                "high",
                "highest",
                "bfloat16",
                "bfloat16_3x",
                "tensorfloat32",
                "float32",
            )
        ),
        "Precision of products that do not say theirs; None leaves it to XLA.",
    )
    # -- how operations run ------------------------------------------------------------
    eager: Option[str] = Option(
        "auto",
        _one_of("auto", "xla"),
        'Eager operations on CPU: "auto" uses NumPy where it gives XLA\'s result and '
        'is faster, "xla" compiles every one.',
    )
    disable_jit: Option[bool] = Option(
        False, _boolean, "Run jitted functions operation by operation, for debugging."
    )
    passes: Option[str] = Option(
        "all",
        _passes,
        "What rewrites the graph of a jitted function before XLA gets it: all, none, "
        "or some of join_scatters, scatter_sums, pick_products, fuse_rows, "
        "flatten_products, split_loops, recompute_residuals, pack_products, "
        "contract_convolutions, compile_kernels, with commas between them.",
    )
    kernel_tuning: Option[bool] = Option(
        False,
        _boolean,
        "Use the candidates of kernels (`kernels.tune`) that were measured before, and "
        "measure those of kernels that are called on arrays, not while a function is "
        "traced.",
    )
    # -- checks ------------------------------------------------------------------------
    debug_nans: Option[bool] = Option(
        False, _boolean, "Raise where a result first contains a NaN (slow)."
    )
    debug_infs: Option[bool] = Option(
        False, _boolean, "Raise where a result first contains an infinity (slow)."
    )
    check_leaks: Option[bool] = Option(
        False, _boolean, "Raise when a traced value outlives its trace (slow)."
    )
    explain_retraces: Option[bool] = Option(
        False, _boolean, "Say why a function is traced again: what changed, from, to."
    )
    log_compiles: Option[bool] = Option(
        False,
        _boolean,
        "Log, as warnings of the logger `fxflow`, each trace, lowering and compilation "
        "and how long it took.",
    )
    transfer_guard: Option[str] = Option(
        "allow",
        _LEVEL,
        "What becomes of copies between host and devices: allow, log, disallow (but "
        "those asked for by device_put and device_get), log_explicit or "
        "disallow_explicit (all).",
    )
    transfer_guard_host_to_device: Option[str | None] = Option(
        None, _optional(_LEVEL), "The same of copies to devices; None: transfer_guard."
    )
    transfer_guard_device_to_host: Option[str | None] = Option(
        None, _optional(_LEVEL), "The same of copies to the host."
    )
    transfer_guard_device_to_device: Option[str | None] = Option(
        None, _optional(_LEVEL), "The same of copies between devices."
    )
    full_tracebacks: Option[bool] = Option(
        False, _boolean, "Show fxflow's own frames in tracebacks of errors."
    )
    # -- devices -----------------------------------------------------------------------
    platforms: Option[str] = Option(
        "",
        _text,
        'Platforms to use, best first, such as "cuda,cpu"; empty: the best found. '
        "Read when the first device is asked for.",
    )
    num_cpu_devices: Option[int] = Option(
        0,
        _count,
        "CPU devices to split the host into; 0: what XLA_FLAGS says, else 1. "
        "Read when the CPU client is made; changing it afterwards is an error.",
    )
    collective_timeout: Option[float] = Option(
        60.0, _seconds, "Seconds after which a collective without its peers fails."
    )
    # -- the compile cache on disk -----------------------------------------------------
    cache: Option[bool] = Option(
        True, _boolean, "Keep compiled programs on disk between processes."
    )
    cache_dir: Option[str] = Option(
        "", _text, "Where compiled programs are kept; empty: the user cache directory."
    )
    cache_max_bytes: Option[int] = Option(
        2 << 30, _size, "Bound on the compile cache; the least recently used go first."
    )

    def __init__(self) -> None:
        # `threading.local` calls this once in each thread that reads the object.
        # This thread's dictionary, by which other threads can write to it.
        state = _ThreadValues(self.__dict__)
        with _lock:
            if not _process_values:
                _process_values.update((o.name, o.initial()) for o in _OPTIONS.values())
                _warn_of_misspelt(os.environ)
            self.__dict__.update(_process_values)
            self.__dict__["_state"] = state
            _threads.add(state)

    def __setattr__(self, name: str, value: object) -> None:
        """Sets option `name` for the whole process.

        A thread inside ``override`` of the same option sees the new value when it
        leaves the block.
        """
        try:
            checked = _option(name).check(value, f"config.{name}")
        except (AttributeError, ValueError) as error:
            self._without_frames(error)
            raise
        # Outside of the lock, since guards and listeners may read and set options.
        for guard in _guards.get(name, ()):
            guard(checked)
        with _lock:
            _process_values[name] = checked
            for thread in list(_threads):
                # Where it is overridden it stays out of the dictionary.
                if not thread.overrides.get(name):
                    thread.values[name] = checked
        _tell(name, getattr(self, name))

    def guard(self, name: str, check: Callable[[Any], None]) -> None:
        """Calls ``check(value)`` before option `name` is assigned; it may raise."""
        _guards.setdefault(_option(name).name, []).append(check)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"config.{name} cannot be deleted; assign to it, or use config.reset"
        )

    def update(self, name: str, value: object) -> None:
        """Sets option `name` for the whole process, by its name.

        Args:
          name: the option, for example ``"x64"``.
          value: what to set it to.

        Raises:
          AttributeError: unknown option.
          ValueError: the value is not allowed.
        """
        try:
            setattr(self, name, value)
        except (AttributeError, ValueError) as error:
            self._without_frames(error)
            raise

    def _without_frames(self, error: Exception) -> None:
        """Takes the frames of this file off an error that is about to reach the user.

        As `core.source.leave` does, which knows more and is not there yet.
        """
        if not self.full_tracebacks:
            error.__traceback__ = None

    def reset(self, *names: str) -> None:
        """Returns options to what the environment or the default says.

        Args:
          *names: the options; none means all of them (but those that are read once,
            and were).
        """
        for name in names or tuple(_OPTIONS):
            try:
                setattr(self, name, _option(name).initial())
            except RuntimeError:
                if names:
                    raise

    def override(self, **values: Any) -> _Override:
        """Sets options for the extent of a ``with`` block.

        They hold for what the block runs in this thread. In an event loop only the task
        that entered the block has them, and tasks started within it.

        Args:
          **values: option names and their values.

        Returns:
          A context manager; it may be entered again. As a decorator it sets them for
          the extent of each call.

        Raises:
          AttributeError: unknown option.
          ValueError: a value is not allowed.
        """
        try:
            checked = {k: _option(k).check(v, f"config.{k}") for k, v in values.items()}
        except (AttributeError, ValueError) as error:
            self._without_frames(error)
            raise
        return _Override(self, checked)

    def overridden(self) -> bool:
        """Returns whether this thread, one of its tasks say, overrides anything."""
        return any(self.__dict__["_state"].overrides.values())

    def on_change(
        self, name: str, callback: Callable[[Any], None]
    ) -> Callable[[], None]:
        """Calls ``callback(value)`` whenever option `name` may have changed.

        It is called after an assignment and on entering and leaving an ``override``,
        in the thread that did it and with the value that now holds in that thread.

        Args:
          name: the option.
          callback: what to call.

        Returns:
          A function that ends the calls.
        """
        listeners = _listeners.setdefault(_option(name).name, [])
        listeners.append(callback)

        def cancel() -> None:
            if callback in listeners:
                listeners.remove(callback)

        return cancel

    def describe(self) -> str:
        """Returns a table of all options: value, default, environment name, meaning."""
        rows = [("option", "value", "default", "environment", "meaning")]
        for option in _OPTIONS.values():
            value = getattr(self, option.name)
            shown = f"{value!r}" + ("" if value == option.default else " *")
            rows.append(
                (
                    option.name,
                    shown,
                    repr(option.default),
                    option.environment,
                    option.doc,
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(w) for cell, w in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )

    def __dir__(self) -> list[str]:
        return sorted({*_OPTIONS, *super().__dir__()} - {"_state"})

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{o.name}={getattr(self, o.name)!r}"
            for o in _OPTIONS.values()
            if getattr(self, o.name) != o.default
        )
        return f"Config({changed})"


_OPTIONS: dict[str, Option[Any]] = {
    name: option for name, option in vars(Config).items() if isinstance(option, Option)
}


# What is read elsewhere: by launched processes, and by the scripts of this repository.
_OTHER_VARIABLES = {
    "FXFLOW_COORDINATOR_ADDRESS",
    "FXFLOW_COORDINATOR_HOSTED",
    "FXFLOW_DATA_DIR",
    "FXFLOW_ELASTIC_ADDRESS",
    "FXFLOW_HEARTBEAT_TIMEOUT",
    "FXFLOW_LOCAL_PROCESS_ID",
    "FXFLOW_NUM_PROCESSES",
    "FXFLOW_PROCESS_ID",
    "FXFLOW_PS_CHIEF",
    "FXFLOW_PS_KEYS",
    "FXFLOW_PS_KEYS_FILE",
    "FXFLOW_PS_SERVERS",
    "FXFLOW_PS_TASK",
    "FXFLOW_PS_WORKERS",
    "FXFLOW_TOKEN",
    "FXFLOW_VENV_DIR",
}


def _warn_of_misspelt(environment: Mapping[str, str]) -> None:
    """Warns of environment variables whose names are nearly those of options."""
    known = {option.environment for option in _OPTIONS.values()} | _OTHER_VARIABLES
    for name in environment:
        if not name.startswith("FXFLOW_") or name in known:
            continue
        import difflib  # needed for this warning only

        parts = {other.removeprefix("FXFLOW_"): other for other in known}
        near = difflib.get_close_matches(
            name.removeprefix("FXFLOW_"), parts, n=1, cutoff=0.75
        )
        if near:
            warnings.warn(
                f"fxflow does not know the environment variable {name}: did you mean "
                f"{parts[near[0]]}?",
                stacklevel=2,
            )


#: Options of JAX, without `jax_`, that have another name here.
_CALLED_HERE = {
    "check_tracer_leaks": "check_leaks",
    "compilation_cache_dir": "cache_dir",
    "compilation_cache_max_size": "cache_max_bytes",
    "enable_compilation_cache": "cache",
    "enable_x64": "x64",
    "explain_cache_misses": "explain_retraces",
    "platform_name": "platforms",
    "traceback_filtering": "full_tracebacks",
}


def own_name(name: str) -> str:
    """Returns what an option of JAX is called here, if there is one like it."""
    short = name.removeprefix("jax_")
    return _CALLED_HERE.get(short, short)


def _option(name: str) -> Option[Any]:
    option = _OPTIONS.get(name)
    if option is None:
        import difflib  # needed for this error only

        own = own_name(name)
        near = difflib.get_close_matches(own, _OPTIONS, n=3, cutoff=0.5)
        if own != name and own in _OPTIONS:
            hint = f"here it is {own}"
        elif near:
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = f"the options are {', '.join(_OPTIONS)}."
        raise AttributeError(f"config has no option {name!r}; {hint}")
    return option


def _tell(name: str, value: Any) -> None:
    for callback in tuple(_listeners.get(name, ())):
        callback(value)


class _Override(ContextDecorator):
    """The context manager, or decorator of a function, of `Config.override`."""

    __slots__ = ("_config", "_entered", "_values")

    def __init__(self, owner: Config, values: dict[str, Any]) -> None:
        self._config, self._values = owner, values
        self._entered: list[dict[str, _Value]] = []

    def __enter__(self) -> Config:
        state: _ThreadValues = self._config.__dict__["_state"]
        entered = {name: _Value(value) for name, value in self._values.items()}
        self._entered.append(entered)
        known = _overrides.get()
        added = {name: (*known.get(name, ()), v) for name, v in entered.items()}
        _overrides.set({**known, **added})
        with _lock:
            for name in entered:
                state.overrides[name] = state.overrides.get(name, 0) + 1
                # From here on a read falls through to `Option.__get__`.
                state.values.pop(name, None)
        for name, value in self._values.items():
            _tell(name, value)
        return self._config

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state: _ThreadValues = self._config.__dict__["_state"]
        known = _overrides.get()
        entered = self._entered_here(known)
        for value in entered.values():
            value.in_force = False
        kept = {
            name: tuple(v for v in values if v.in_force)
            for name, values in known.items()
        }
        _overrides.set({name: values for name, values in kept.items() if values})
        with _lock:
            for name in entered:
                state.overrides[name] -= 1
                if not state.overrides[name]:
                    state.values[name] = _process_values[name]
        for name in entered:
            _tell(name, getattr(self._config, name))

    def _entered_here(self, known: dict[str, tuple[_Value, ...]]) -> dict[str, _Value]:
        """Returns what was set last, and forgets it; tasks may share the manager."""
        for i, entered in reversed(list(enumerate(self._entered))):
            if all(value in known.get(name, ()) for name, value in entered.items()):
                return self._entered.pop(i)
        return self._entered.pop()  # left in another context than entered


config: Config = Config()
