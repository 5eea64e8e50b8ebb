"""Puts wrong things into calls that work, in a process of its own.

`python -m tests.sweeps.bad_arguments` reads numbers of cases, runs each, and prints a
line before each and one for each that ends as none may: with an error of Python's,
NumPy's or the compiler's own instead of one that names the argument.
"""

from __future__ import annotations

import dis
import functools
import inspect
import io
import json
import os
import re
import resource
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import FxflowError
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.other_calls import OTHER

ROOT = os.path.dirname(fxflow.__file__) + os.sep
HERE = os.path.dirname(__file__) + os.sep
MEMORY = 12 << 30


class Strange:
    """Nothing that any function takes."""

    def __repr__(self) -> str:
        return "Strange()"


def wrong_things() -> dict[str, Any]:
    """What is put in an argument's place, by name."""
    six = np.arange(6, dtype=np.float32).reshape(2, 3)
    return {
        "None": None,
        "True": True,
        "text": "abc",
        "bytes": b"xy",
        "list": [1, "a"],
        "nested": ((1, 2), (3,)),
        "empty": (),
        "pair": (0, 0),
        "dict": {"q": 1},
        "set": {1, 2},
        "slice": slice(1, 2),
        "ellipsis": ...,
        "object": Strange(),
        "class": Strange,
        "lambda": lambda *args, **kwargs: None,
        "generator": None,  # a new one each time
        "dtype": fnp.float32,
        "float": 1.5,
        "nan": float("nan"),
        "inf": float("inf"),
        "complex": 1 + 2j,
        "negative": -7,
        "huge": 2**62,
        "hugely negative": -(2**62),
        "no C integer": 10**30,
        "huge pair": (2**62, 2**62),
        "rank 5": fnp.ones((1, 2, 1, 2, 1)),
        "length 7": fnp.ones(7),
        "length 0": fnp.zeros(0),
        "bools": fnp.array([True, False]),
        "integers": fnp.array([1, 2]),
        "masked": np.ma.masked_array(six, six > 3),
        "texts": np.array(["a", "b"]),
        "objects": np.array([None, 1], object),
        "dates": np.array(["2020-01-01"], "M8[D]"),
        "float0": np.zeros(2, fxflow.float0),
        "key": random.key(1),
        "keys": random.split(random.key(0), 3),
    }


@dataclass(frozen=True)
class Case:
    """One wrong thing in the place of one argument."""

    call: Call
    parameter: str
    thing: str

    def __str__(self) -> str:
        return f"{self.call}({self.parameter}={self.thing})"


@functools.cache
def cases() -> list[Case]:
    """Every thing in each argument of each call, one call for each function."""
    found = []
    seen = set()
    things = list(wrong_things())
    for call in (*catalogue(), *OTHER):
        if call.name in seen:
            continue
        seen.add(call.name)
        for name in parameters(call):
            found += [Case(call, name, thing) for thing in things]
    return found


def parameters(call: Call) -> dict[str, inspect.Parameter]:
    """The arguments that can be given, by name."""
    try:
        found = inspect.signature(call.function).parameters
    except (TypeError, ValueError):
        return {}
    return {n: p for n, p in found.items() if p.kind is not p.VAR_KEYWORD}


def run(case: Case) -> Any:
    """Makes the call, with the wrong thing where it belongs."""
    value = wrong_things()[case.thing]
    if case.thing == "generator":
        value = (i for i in range(3))
    args, kwargs = case.call.arguments(case.call.draw())
    known = parameters(case.call)
    place = list(known).index(case.parameter)
    parameter = known[case.parameter]
    given = list(args)
    if place < len(given) or parameter.kind is parameter.VAR_POSITIONAL:
        given[place : place + 1] = [value]
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        between = list(known.values())[len(given) : place]
        given += [p.default for p in between] + [value]
    else:
        kwargs = {**kwargs, case.parameter: value}
    result = case.call.function(*given, **kwargs)
    fxflow.block_until_ready(
        [x for x in fxflow.tree.leaves(result) if isinstance(x, fxflow.Array)]
    )
    return result


# -- what may not be -------------------------------------------------------------------

_OURS = (
    FxflowError,
    fxflow.devices.BackendError,
    fxflow.devices.PlacementError,
    MemoryError,
)
# A message begins with a function, an operator or an argument.
_NAMED = re.compile(r"[A-Za-z_][\w.=]*(\(.*\))?:? |\W{1,3}: |<lambda> returns ")
# Words of messages that were not written for a user of fxflow.
_INSIDE = re.compile(
    r"has no attribute|not subscriptable|takes .*positional arg|unexpected keyword|"
    r"incompatible function arg|std::|is not iterable|not supported between|"
    r"unsupported operand|unhashable|cannot be interpreted|INVALID_ARGUMENT|INTERNAL|"
    r"StableHLO|mlir|too many values|not enough values|can only concatenate|"
    r"bad operand|index out of range|GraphTracer|LinearizeTracer|JVPTracer|"
    r"BatchTracer|PyTreeDef\(|Aval |invalid literal|has no len"
)


def fault(case: Case, error: BaseException) -> str | None:
    """Says what is wrong with how a call has failed; None if nothing is."""
    frames = list(_frames(error.__traceback__))
    text = str(error)
    code, at = frames[-1]
    if not code.co_filename.startswith(ROOT) and code.co_filename.startswith(HERE):
        return None  # the call itself: the number of arguments, or a function of ours
    names = [frame[0].co_filename for frame in frames]
    inner = names[next((i for i, n in enumerate(names) if n.startswith(ROOT)), 0) :]
    if any(name.startswith(HERE) for name in inner):
        return None  # from a function that was passed
    if type(error).__name__ == "MaskError":
        return None  # the masked array itself refuses to be asked
    where = f"{code.co_filename.removeprefix(ROOT)}:{_line(error)}"
    said = f"{type(error).__name__} at {where}: {text[:160]}"
    if re.search(r"(Strange|<lambda>|_Scalar\S*)\(\) (takes|missing|got)", text):
        return None  # the function that was put in is called with what it does not take
    if _INSIDE.search(text):
        return f"words from inside: {said}"
    if isinstance(error, _OURS):
        pass
    elif type(error) not in (TypeError, ValueError, OverflowError, NameError):
        return f"an error from inside: {said}"
    elif not (
        code.co_filename.startswith(ROOT)
        and dis.opname[code.co_code[at]] in ("RAISE_VARARGS", "RERAISE")
    ) and not text.startswith(f"{case.call.function.__name__}("):
        return f"not raised by fxflow: {said}"
    if _NAMED.match(text) is None:
        return f"names nothing: {said}"
    return None


def _frames(traceback: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next


def _line(error: BaseException) -> int:
    traceback = error.__traceback__
    line = 0
    while traceback is not None:
        line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def main() -> None:
    """Runs the cases whose numbers are read."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    fxflow.config.full_tracebacks = True  # where an error comes from is looked at
    known = cases()
    out = sys.stdout
    for number in map(int, sys.stdin.read().split()):
        print("begin", number, file=out, flush=True)
        try:
            with redirect_stdout(io.StringIO()):
                run(known[number])
        except Exception as error:
            found = fault(known[number], error)
            if found:
                print("fault", number, json.dumps(found), file=out, flush=True)
    print("end", file=out, flush=True)


if __name__ == "__main__":
    main()
