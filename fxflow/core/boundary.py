"""What stands between the user and a public function: clear errors, no own frames.

A call that works pays for one frame of Python. Where a call fails with an error of
Python's or NumPy's own, such as `'str' object has no attribute 'ndim'`, the arguments
are compared with the function's signature: its annotations say what each may be. So the
check is written once, is never in the way of what works, and cannot disagree with the
documentation.
"""

from __future__ import annotations

import abc
import dis
import functools
import importlib
import inspect
import numbers
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, GenericAlias, MappingProxyType, UnionType
from typing import Any, TypeVar, cast

import numpy as np

from fxflow._names import answer, answer_attributes, called_here
from fxflow.core.arrays import Array, dtypes, is_arraylike
from fxflow.core.arrays.array import text_of
from fxflow.core.runtime.eager import plans_of
from fxflow.core.source import (
    interrupted,
    is_internal,
    leave,
    located,
    name_of,
    shorten,
)
from fxflow.errors import ArgumentError, ConcretizationError, FxflowError

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)

# Results that are functions: optimizers and learning rates.
_MADE = {
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "Initializer",
    "Schedule",
}


def boundary(function: F) -> F:
    """Makes a public function raise errors that speak of what the user wrote.

    Args:
      function: a public function, or a method that calls the user's functions.
    """
    is_method = "." in function.__qualname__
    notes = getattr(function, "__annotations__", {})
    makes_function = notes.get("return") in _MADE
    leave_call = leaving(function, is_method)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if makes_function:  # its own call looks at the arguments much later
                _require_arguments(function, args, kwargs)
                return _guarded_made(function(*args, **kwargs))
            return function(*args, **kwargs)
        except Exception as error:
            wrong = leave_call(error, args, kwargs)
            if wrong is not None:
                try:
                    raise wrong from None
                except Exception as told:  # without this frame
                    shorten(told)
                    raise
            raise
        except BaseException:
            interrupted()
            raise

    return cast(F, call)


def leaving(
    function: Callable[..., Any], is_method: bool = False
) -> Callable[[Exception, tuple[Any, ...], dict[str, Any]], Exception | None]:
    """Returns what makes an error that leaves a call of a function speak of it.

    What the user calls asks it in `except Exception as error:`. It gives the error that
    is to be raised in place of that one, or None.
    """

    def leave_call(
        error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Exception | None:
        if is_internal(sys._getframe(2).f_code.co_filename):
            return None  # the user called another function of ours, which tells
        if type(error) is TypeError and not _fits(function, args, kwargs):
            called = called_here(kwargs, inspect.signature(function).parameters)
            error.args = (f"{error}{called}; {_signature(function, is_method)}",)
        elif not is_method and _is_from_inside(error):
            wrong = _wrong_argument(function, args, kwargs)
            if wrong is not None:
                return wrong
            _name_call(function, args, kwargs, error)
        shorten(error)
        return None

    return leave_call


def public(
    namespace: dict[str, Any],
    names: Iterable[str],
    lazy: Iterable[str] = (),
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Puts a boundary around the functions of a public module, and lists its names.

    Functions without an argument that their annotations say something about, those of
    operands alone, are also the ones that are called most: theirs only takes own frames
    off tracebacks, and costs a call of as many arguments.

    Args:
      namespace: the module's `globals()`.
      names: its public names.
      lazy: submodules that are imported when first used.
      elsewhere: submodules that are imported when one of their names, which stand in
        one text, is first used.
    """
    module = namespace["__name__"]
    homes = {name: home for home, held in elsewhere.items() for name in held.split()}

    def take(name: str) -> Any:
        found = importlib.import_module(f"{module}.{homes.get(name, name)}")
        if name not in homes:
            return found
        namespace[name] = guarded(getattr(found, name), module, name)
        return namespace[name]

    absent = (*lazy, *homes)
    answer(namespace, names, absent, take)
    for name in names:
        if name not in absent:
            namespace[name] = guarded(namespace[name], module, name)


def guard_methods(kind: K) -> K:
    """Puts boundaries around the methods that users call of a class of fxflow.

    Args:
      kind: the class; a decorator of it. Properties and inherited methods are not
        touched, nor what its attribute `_called_inside` names: methods that fxflow
        itself calls, behind a boundary.
    """
    answer_attributes(kind)
    inside = getattr(kind, "_called_inside", ())
    for name, method in list(vars(kind).items()):
        shown = not name.startswith("_") or name in _CALLED
        shown = shown and name not in inside
        if shown and type(method) is FunctionType and method.__code__ not in _CALLS:
            setattr(kind, name, boundary(method))
    return kind


_CALLED = {"__call__", "__getitem__", "__init__", "__new__", "__next__"}
_CALLED |= {"__setitem__", "__matmul__", "__rmatmul__"}
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _CALLED |= {f"__{_name}__", f"__r{_name}__"}


def guarded(value: Any, module: str, name: str) -> Any:
    """Returns a function of a public module with its boundary; anything else as it is.

    A class gets them around its methods, but for `Array` and tracers, whose methods are
    called often, and named tuples, which have Python's.

    Args:
      value: what stands in the module.
      module: its name.
      name: the public one, where pickle finds the function.
    """
    if (
        type(value) in (type, abc.ABCMeta)
        and not issubclass(value, Array)
        and not hasattr(value, "_fields")
    ):
        return guard_methods(value)
    if type(value) is not FunctionType or value.__code__ in _CALLS:
        return value
    if value.__module__.partition(".")[0] != "fxflow":
        return value  # NumPy's `printoptions`
    if value in _guarded:
        return _guarded[value]
    kinds = {v for k, v in value.__annotations__.items() if k != "return"}
    if plans_of(value) is not None:
        # A library function takes care of its tracebacks itself: no frame is needed.
        if kinds <= _OPERANDS:
            return value
        function: Any = value
        function.leave = leaving(value, is_method=False)
    else:
        of_operands = _OF_OPERANDS.get(_operands(value)) if kinds <= _OPERANDS else None
        function = (of_operands or boundary)(value)
    _guarded[value] = function
    function.__module__, function.__qualname__ = module, name
    return function


# So that a function is one object under all its names.
_guarded: dict[FunctionType, Any] = {}


_OPERANDS = {"Any", "ArrayLike", "Array", "T"}  # T: any pytree


def _guarded_made(made: Any) -> Any:
    """Returns a function, or a named tuple of functions, with boundaries."""
    if isinstance(made, tuple):
        parts = [_guarded_made(part) for part in made]
        # What the user passed in, or is guarded, stays the object that it is.
        same = all(a is b for a, b in zip(made, parts, strict=True))
        return made if same else type(made)(*parts)
    if (
        type(made) is FunctionType
        and made.__code__ not in _CALLS
        and is_internal(made.__code__.co_filename)
    ):
        return boundary(made)
    return made


def _operands(function: FunctionType) -> int:
    """Returns how many operands a function takes; 0 if it takes anything else too."""
    code = function.__code__
    plain = (
        code.co_argcount == code.co_posonlyargcount
        and not code.co_kwonlyargcount
        and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        and not function.__defaults__
    )
    return code.co_argcount if plain else 0


def _of_one(function: F) -> F:
    @functools.wraps(function)
    def call(x: Any, /) -> Any:
        try:
            return function(x)
        except Exception as error:
            leave(error)
            raise

    return cast(F, call)


def _of_two(function: F) -> F:
    @functools.wraps(function)
    def call(x: Any, y: Any, /) -> Any:
        try:
            return function(x, y)
        except Exception as error:
            leave(error)
            raise

    return cast(F, call)


_OF_OPERANDS: dict[int, Callable[[Any], Any]] = {1: _of_one, 2: _of_two}
# All boundaries of one kind share a code object, which tells them from plain functions.
_CALLS = {make(_of_one).__code__ for make in (boundary, _of_one, _of_two)}


# -- whose mistake it is ---------------------------------------------------------------

_LIBRARIES = (
    os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
    os.path.dirname(os.path.dirname(os.path.abspath(np.__file__))) + os.sep,
)


def _fits(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Returns whether the number and the names of arguments are a function's."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _signature(function: Callable[..., Any], is_method: bool) -> str:
    """Returns the words for the arguments that a function takes."""
    parameters = []
    for parameter in list(inspect.signature(function).parameters.values())[is_method:]:
        default = parameter.default
        if default is not parameter.empty and not isinstance(default, _PLAIN):
            parameter = parameter.replace(default=...)
        parameters.append(parameter.replace(annotation=parameter.empty))
    name = function.__qualname__ if is_method else function.__name__
    listed = str(inspect.Signature(parameters)).replace("Ellipsis", "...")
    return f"the signature is {name.removesuffix('.__init__')}{listed}"


def _require_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises the error for an argument that is not what its annotation says."""
    if not _fits(function, args, kwargs):
        return  # the call itself says what is missing
    wrong = _wrong_argument(function, args, kwargs)
    if wrong is not None:
        raise wrong


def _wrong_argument(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> ArgumentError | None:
    """Returns the error for the argument that is not what its annotation says."""
    signature = inspect.signature(function)
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD or value is parameter.default:
            continue
        several = parameter.kind is parameter.VAR_POSITIONAL
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        for one in value if several else (value,):
            expected = words(str(parameter.annotation), (one,), scope)
            if not expected:
                continue
            called, got = function.__name__, shown(one)
            if several and isinstance(one, list | tuple):
                got = f"a {type(one).__name__} of {len(one)}: pass its items one by one"
                got = f"{got}, {called}(*{name})"
            return ArgumentError(f"{called}: {name} must be {expected}, got {got}")
    return None


def _name_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> None:
    """Makes the message of an error of Python's or NumPy's tell of which call it is."""
    if type(error) not in (TypeError, ValueError, OverflowError, MemoryError):
        return
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    listed = ", ".join(f"{name}={shown(value, 24)}" for name, value in given.items())
    said = re.sub(r"\b\w+\.<locals>\.", "", str(error))  # of a function in a function
    error.args = (f"{function.__name__}({listed}): {said}",)


def _is_from_inside(error: Exception) -> bool:
    """Returns whether fxflow met an error, rather than it or the user raised it."""
    if isinstance(error, FxflowError):
        return False
    entry = error.__traceback__
    assert entry is not None
    entry = entry.tb_next
    raised = True  # the call itself: Python's error of the number of arguments
    while entry is not None:
        code = entry.tb_frame.f_code
        if is_internal(code.co_filename):
            # What our own `raise` says is meant for the user; other errors are not.
            opcode = code.co_code[entry.tb_lasti]
            raised = dis.opname[opcode] == "RAISE_VARARGS"
        elif code.co_filename.startswith(_LIBRARIES):
            raised = False
        else:
            return False
        entry = entry.tb_next
    return not raised


def require_callable(function: Any, what: str) -> None:
    """Checks that an argument is a function that returns its result.

    Args:
      function: the argument.
      what: the function that it is given to, as in `jit`, or an argument of it that is
        one of several, as in `scan: f`.

    Raises:
      ArgumentError: it is something else (the usual mistake: its result), or a function
        that a call does not run: a generator or coroutine function.
    """
    takes = f"{what} must be" if ":" in what else f"{what} takes"
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise ArgumentError(
            f"{takes} a function, got a {kind}: put @{kind} outside, above @{what}"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentError(
            f"{takes} a function that returns its result, got the generator "
            f"function {name_of(function)}: return a list or a tuple"
        )
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"{takes} a function that returns its result, got the coroutine "
            f"function {name_of(function)}: await outside of it"
        )
    if not callable(function):
        given = f"{type(function).__name__} {str(function)[:60]}"
        if isinstance(function, Array):
            given = f"the array {function.aval}"
        hint = "" if ":" in what else ": pass the function itself, not its result"
        raise ArgumentError(f"{takes} a function, got {given}{hint}")


def shown(value: Any, length: int = 60) -> str:
    """Returns what a message shows of an argument, its text being cut at a length."""
    aval = getattr(value, "aval", None)
    if aval is not None and isinstance(value, Array):
        return f"{aval}"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if inspect.isroutine(value):
        return located(value)
    text = text_of(value, length)
    return text if isinstance(value, _PLAIN) else f"{text} ({type(value).__name__})"


_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, type(None), type)

# -- what annotations say --------------------------------------------------------------


def _is_bool(value: Any) -> bool:
    if isinstance(value, Array | np.ndarray):
        return not value.ndim
    return isinstance(value, bool | int | np.bool_ | np.integer)


def _is_int(value: Any) -> bool:
    try:
        operator.index(value)
    # A traced integer is an integer: that it has no value yet is for its own error.
    except ConcretizationError:
        return True
    except TypeError:
        return False
    return True


def _is_scalar(value: Any) -> bool:
    # Arrays that broadcast against a leaf are let through: a factor for each row, say.
    if isinstance(value, Array | np.ndarray):
        return not dtypes.is_key(value.dtype)
    return isinstance(value, numbers.Real)


def _is_number(value: Any) -> bool:
    return _is_scalar(value) and not getattr(value, "ndim", 0)


def _is_rate(value: Any) -> bool:
    return callable(value) or _is_number(value)


def _is_dtype(value: Any) -> bool:
    try:
        dtypes.dtype(value)
    except TypeError:
        return False
    return True


def _are(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def checked(values: Any) -> bool:
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            return False
        try:
            return all(map(check, values))
        except TypeError:
            return False

    return checked


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes)


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


_INTS = ("a sequence of integers", _are(_is_int))
_INT = ("an integer", _is_int)
# What an annotation asks for, in words, and whether a value is that. Parameters in the
# place of a learning rate are a habit from PyTorch, whose optimizers take them first.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("None", lambda value: value is None),
    "bool": ("a bool", _is_bool),
    "int": _INT,
    "SupportsIndex": _INT,
    "float": ("a real number", _is_number),
    "Scalar": ("a real number", _is_scalar),
    "Rate": ("a number, such as 1e-3 (parameters go to `init`)", _is_number),
    "ScalarOrSchedule": (
        "a number or a schedule (a function of the number of updates), as in "
        "optim.adam(1e-3).init(params)",
        _is_rate,
    ),
    "str": ("a string", _is(str)),
    "bytes": ("bytes", _is(bytes)),
    "type": ("a class", _is(type)),
    "Callable": ("a function", callable),
    "Mapping": ("a dict", _is(Mapping)),
    "Sequence[int]": _INTS,
    "Sequence[SupportsIndex]": _INTS,
    "Sequence[int | None]": (
        "a sequence of integers or None",
        _are(lambda value: value is None or _is_int(value)),
    ),
    "tuple[int, int]": (
        "a pair of integers",
        lambda value: _INTS[1](value) and len(value) == 2,
    ),
    "Sequence[bool]": ("a sequence of bools", _are(_is_bool)),
    "Sequence[str]": ("a sequence of strings", _are(_is(str))),
    "tuple[str, ...]": ("a tuple of strings", _are(_is(str))),
    "tuple": ("a tuple", _are(_is(object))),
    "Sequence": ("a sequence", _are(_is(object))),
    "Iterable": ("an iterable", _is_iterable),
    "Collection": ("a collection", _is_iterable),
    "ArrayLike": ("an array", is_arraylike),
    "Array": ("an array", _is(Array)),
    "DTypeLike": ("a dtype", _is_dtype),
}
# Names for several of them.
_ALIASES = {
    "Axes": "SupportsIndex | Sequence[SupportsIndex] | None",
    "ShapeLike": "SupportsIndex | Sequence[SupportsIndex]",
    "Schedule": "Callable",
}


Kind = tuple[str, Callable[[Any], bool]]


def _checks(annotation: str, scope: Mapping[str, Any]) -> list[Kind]:
    """Returns what the parts of an annotation ask for; nothing if one is unknown."""
    found = []
    for part in _parts(annotation):
        path = part.partition("[")[0]
        head = path.rpartition(".")[2]
        meant = None if head == "Any" else _meaning(path, scope)
        kinds = [kind] if (kind := _KINDS.get(part) or _KINDS.get(head)) else []
        if part in _ALIASES:
            kinds = _checks(_ALIASES[part], scope)
        elif not kinds and isinstance(meant, type) and meant is not Any:
            kinds = [_instance_of(meant)]
        elif not kinds and isinstance(meant, GenericAlias | UnionType):
            kinds = _checks(str(meant), scope)
        if not kinds:
            return []
        found += kinds
    return found


def _meaning(path: str, scope: Mapping[str, Any]) -> Any:
    """Returns what a name stands for in a module, or None."""
    first, *rest = path.split(".")
    return functools.reduce(lambda at, n: getattr(at, n, None), rest, scope.get(first))


def _instance_of(kind: type) -> Kind:
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return f"{article} {kind.__name__}", _is(kind)


def _parts(annotation: str) -> list[str]:
    """Returns the parts of a union, `a | b[c | d]` being two."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def words(
    annotation: str, values: Iterable[Any], scope: Mapping[str, Any] | None = None
) -> str:
    """Returns what values should have been, by an annotation; nothing if they are.

    Args:
      annotation: as it is written in the signature.
      values: the arguments.
      scope: the globals of the function, where names of classes mean something.

    Example:
      >>> words("int | None", ["three"])
      'an integer or None'
      >>> words("int | None", [3])
      ''
    """
    checks = _checks(annotation, scope or {})
    if not checks or all(any(is_(v) for _, is_ in checks) for v in values):
        return ""
    return " or ".join(dict.fromkeys(word for word, _ in checks))
