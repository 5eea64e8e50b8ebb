"""`debug.breakpoint`: a prompt in the middle of a program that runs.

A breakpoint is met twice. When the function is traced it remembers the user's frames:
code, line, and the local variables, whose arrays become operands of a call of Python.
When the program runs, the call puts their values back under the user's names and asks
what to do next. The frames themselves have returned by then.
"""

from __future__ import annotations

import bdb
import cmd
import contextlib
import linecache
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from types import FrameType
from typing import Any, TextIO

import numpy as np

from fxflow.core import source, tree
from fxflow.core.arrays import (
    Array,
    Aval,
    as_array,
    dtypes,
    host_of,
    is_arraylike,
    typeof,
)
from fxflow.core.arrays.array import not_an_array
from fxflow.core.ir.primitive import DEBUG, ORDERED
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.source import is_internal
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.callbacks import PythonCallback
from fxflow.lax.collectives import axis_index
from fxflow.lax.control_flow.cond import cond
from fxflow.transforms.jit import JitFunction

#: How many frames are remembered, from the innermost outwards.
MAX_FRAMES = 24
# Where functions are traced whose rules must not see values from around them.
_SEALED = tuple(f"custom_{kind}.py" for kind in ("function", "jvp", "vjp", "vmap"))
# What runs the user's program: its frames are not the user's.
_RUNNERS = {"IPython", "_pytest", "ipykernel", "pluggy", "runpy", "threading"}
# Commands of Python's debugger that a program cannot obey.
_STEPS = {"n", "next", "s", "step", "r", "return", "unt", "until", "j", "jump"}
_CONTEXT = 5  # lines of source around the one that is shown


@dataclass(frozen=True)
class Operand:
    """Stands for an array of a local variable: the operand of that number."""

    number: int


@dataclass(frozen=True)
class Tangent:
    """Stands for a tangent, which the forward pass of `grad` does not compute."""

    aval: Aval

    def __repr__(self) -> str:
        return f"{self.aval}, a tangent: grad does not compute it"


@dataclass
class Frame:
    """A frame of the user's, as it was when the function was traced.

    Attributes:
      file: of its source.
      function: its name.
      line: that it was at.
      names: local variables: a structure and leaves, some of which are operands.
      scope: global variables.
      is_live: whether its arrays are those of this run. A frame around the call of a
        jitted function does not run again: its arrays are those of the first call.
    """

    file: str
    function: str
    line: int
    names: dict[str, tuple[Any, list[Any]]]
    scope: dict[str, Any]
    is_live: bool

    @property
    def place(self) -> str:
        """Such as `train.py:12 (loss)`."""
        return f"{self.file}:{self.line} ({self.function})"

    def values(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """Returns the local variables.

        Args:
          arrays: values of the operands.
        """
        found = {}
        for name, (treedef, leaves) in self.names.items():
            filled = [arrays[x.number] if type(x) is Operand else x for x in leaves]
            try:
                found[name] = treedef.unflatten(filled)
            except Exception:  # a class of the user's that checks what it is made of
                found[name] = filled
        return found

    def replaced(self, leaves: Sequence[Any]) -> Frame:
        """Returns the frame with something else for each operand."""
        names = {
            name: (
                treedef,
                [leaves[x.number] if type(x) is Operand else x for x in old],
            )
            for name, (treedef, old) in self.names.items()
        }
        return replace(self, names=names)


class _Recorder:
    """Remembers frames, and the arrays in them as operands."""

    def __init__(self) -> None:
        self.operands: list[Any] = []
        self._numbers: dict[int, Operand] = {}
        # Whether the walk passed a jitted function, a custom rule, a missing array.
        self._traced = self._sealed = self._missed = False

    def frames(self, frame: FrameType | None, most: int) -> list[Frame]:
        """Returns the user's frames from one outwards, `most` at most."""
        found: list[Frame] = []
        while frame is not None and len(found) < most:
            code = frame.f_code
            if frame.f_globals.get("__name__", "").partition(".")[0] in _RUNNERS:
                break
            if not is_internal(code.co_filename):
                found.append(self._frame(frame))
                if code.co_name == "<module>":
                    break
            elif code is JitFunction._trace.__code__:
                self._traced = True
            elif code.co_filename.endswith(_SEALED):
                self._sealed = True
            frame = frame.f_back
        return found

    def _frame(self, frame: FrameType) -> Frame:
        code, self._missed = frame.f_code, False
        names = {
            name: self._recorded(value)
            for name, value in frame.f_locals.items()
            # Variables that Python makes, such as the iterator `.0`. Those of a
            # module are its globals, which are looked up later.
            if name.isidentifier()
            and not name.startswith("__")
            and code.co_name != "<module>"
        }
        return Frame(
            code.co_filename,
            code.co_name,
            frame.f_lineno or 0,
            names,
            frame.f_globals,
            not self._missed,
        )

    def _recorded(self, value: Any) -> tuple[Any, list[Any]]:
        try:
            leaves, treedef = tree.flatten(value)
        except Exception:  # nothing that a debugger may stop at
            leaves, treedef = [value], tree.structure(0)
        return treedef, list(map(self._leaf, leaves))

    def _leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            return leaf
        if self._sealed:
            available = False
        elif isinstance(leaf, Tracer):
            # A value of a trace in progress is passed in, as one that a function closes
            # over is. That of a jitted function's eager caller is not there again.
            available = getattr(leaf._trace, "open", not self._traced)
        else:
            available = not (self._traced or leaf.is_deleted())
        if not available:
            self._missed = True
            return leaf
        known = self._numbers.get(id(leaf))
        if known is None:
            known = self._numbers[id(leaf)] = Operand(len(self.operands))
            self.operands.append(leaf)
        return known


class _Stop:
    """What a program calls at a breakpoint.

    Its operands: whether to stop; the index along each named axis; the arrays.
    """

    __name__ = "debug.breakpoint"

    def __init__(
        self,
        frames: list[Frame],
        axes: tuple[tuple[str, str], ...],
        session: Callable[[_Stopped], None],
    ) -> None:
        # A function that refers to mutable state: loop bodies with a breakpoint are
        # traced each time.
        self.function: Callable[[_Stopped], None] = lambda stopped: session(stopped)
        self.frames, self.axes = frames, axes

    def __call__(self, *arrays: Any) -> list[Any]:
        self.at(arrays, ())
        return []

    def at(self, arrays: Sequence[Any], element: tuple[int, ...]) -> None:
        """Stops if that is wanted."""
        if not np.all(np.asarray(_on_host(arrays[0]))):
            return
        where = []
        if element:
            where.append(f"element {', '.join(map(str, element))} of vmap")
        start = 1 + len(self.axes)
        for (kind, name), index in zip(self.axes, arrays[1:], strict=False):
            where.append(f"{kind} {name} = {int(_on_host(index))}")
        values = [_on_host(x) for x in arrays[start:]]
        self.function(_Stopped(self.frames, values, "; ".join(where)))

    def without_tangents(self, avals: Sequence[Aval], known: Sequence[bool]) -> _Stop:
        """Returns what is called with the known operands alone."""
        numbers, leaves = count(), []
        for aval, is_known in list(zip(avals, known, strict=True))[
            1 + len(self.axes) :
        ]:
            leaves.append(Operand(next(numbers)) if is_known else Tangent(aval))
        frames = [frame.replaced(leaves) for frame in self.frames]
        return _Stop(frames, self.axes, self.function)

    def vectorized(self, size: int, mapped: Sequence[bool]) -> _StopEach:
        """Returns what is called for all elements at once."""
        return _StopEach(self, size, mapped)


class _StopEach(_Stop):
    """A breakpoint in a vectorized function: stops at each element in turn."""

    def __init__(self, inner: _Stop, size: int, mapped: Sequence[bool]) -> None:
        self.inner, self.size, self.mapped = inner, size, tuple(mapped)
        self.function = inner.function
        self.frames, self.axes = inner.frames, inner.axes

    def without_tangents(self, avals: Sequence[Aval], known: Sequence[bool]) -> _Stop:
        """See `_Stop.without_tangents`."""
        mapped = list(compress(self.mapped, known))
        inner = self.inner.without_tangents(
            [
                a.update(shape=a.shape[m:])
                for a, m in zip(avals, self.mapped, strict=True)
            ],
            known,
        )
        return _StopEach(inner, self.size, mapped)

    def at(self, arrays: Sequence[Any], element: tuple[int, ...]) -> None:
        """Stops at the elements for which that is wanted."""
        given = [
            _on_host(x) if m else x for x, m in zip(arrays, self.mapped, strict=True)
        ]
        for i in range(self.size):
            row = [x[i] if m else x for x, m in zip(given, self.mapped, strict=True)]
            self.inner.at(row, (*element, i))


def _on_host(value: Any) -> Any:
    """Returns an array as NumPy's; a key stays what it is."""
    if not isinstance(value, Array) or dtypes.is_key(value.aval.dtype):
        return value
    return host_of(value)


def breakpoint(
    *,
    when: Any = None,
    ordered: bool = False,
    num_frames: int | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> None:
    """Stops here when the program runs, also a compiled one, and asks what to do.

    The prompt knows the values of the local variables by their names, in this function
    and in those that called it, and takes Python expressions of them; arrays are
    NumPy's. Its commands are those of Python's debugger, as far as they make sense:
    `p` (print), `l` (source), `u` and `d` (up and down), `w` (where), `a` (all local
    variables), `c` (go on), `q` (end: `bdb.BdbQuit` is raised); `off` goes on, and
    stops here no more.

    It stops wherever code runs: within `jit`, `scan`, `cond` and `while_loop`; in the
    forward pass of `grad`, which computes these values; under `vmap` for each element,
    under `shard_map` and `pmap` on each device, one after the other, and says which.

    Args:
      when: bool[], which may be traced: whether to stop. None: always. Nothing is
        copied to the host while it is false.
      ordered: whether stops keep the order of the program (not under `vmap`).
      num_frames: how many frames it remembers; None: up to the module.
      stdin: where commands are read from. None: the terminal or notebook. In a process
        that has neither it prints the frame and goes on, so it never hangs.
      stdout: where answers are written; None: `sys.stdout`.

    Raises:
      ArgumentError: `when` is not an array, `num_frames` is not positive, or `stdin`
        or `stdout` is not an open text file.
      DtypeError: `when` is not of booleans.
      ShapeError: `when` is not 0-d.

    Special cases:
      A frame around the call of a jitted function runs when the function is traced, and
      not at later calls: its arrays are shown as they were then, and marked. Values of
      transformations around that call are shown by their types, and so are tangents in
      a rule of `custom_jvp`, which `grad` does not compute.

    Example:
      >>> def f(x):
      ...     y = fnp.log(x)
      ...     breakpoint(when=fnp.isnan(y))
      ...     return y
      >>> fxflow.jit(f)(1.0).item()
      0.0
    """
    if num_frames is not None and (not isinstance(num_frames, int) or num_frames < 1):
        raise ArgumentError(
            f"breakpoint: num_frames is a positive number of frames, got {num_frames!r}"
        )
    for name, file, method in (
        ("stdin", stdin, "readline"),
        ("stdout", stdout, "write"),
    ):
        if file is not None and not hasattr(file, method):
            raise ArgumentError(
                f"breakpoint: {name} is an open text file, such as io.StringIO(), got "
                f"{file!r}"
            )
    flag: Any = np.bool_(True)
    if when is not None:
        if not is_arraylike(when):
            raise not_an_array(when, "breakpoint: when is")
        flag, aval = as_array(when), typeof(when)
        if aval.dtype != np.bool_:
            raise DtypeError(f"breakpoint: when is bool[], got {aval}: write x > 0")
        if aval.ndim:
            raise ShapeError(
                f"breakpoint: when is bool[], got {aval}: write fnp.any(...)"
            )
        if not isinstance(flag, Tracer) and not flag:
            return
    recorder = _Recorder()
    frames = recorder.frames(source.user_frame(2), num_frames or MAX_FRAMES)
    axes = [
        (name, "device" if mesh is not None else "axis")
        for name, _, _, mesh in state.axes
    ]
    prompt = _Prompts(stdin, stdout)
    stop = _Stop(frames, tuple((kind, str(name)) for name, kind in axes), prompt.stop)
    operands = [*(axis_index(name) for name, _ in axes), *recorder.operands]

    def call(*operands: Any) -> None:
        PythonCallback.bind(
            flag,
            *operands,
            function=stop,
            out_avals=(),
            effect=ORDERED if ordered else DEBUG,
            vmap_method=None,
            caller=None,
        )

    if isinstance(flag, Tracer):
        cond(flag, call, lambda *operands: None, *operands)
    else:
        call(*operands)


# -- the prompt ------------------------------------------------------------------------

# One prompt at a time: devices may stop at once.
_prompting = threading.Lock()


@dataclass(frozen=True)
class _Stopped:
    """A breakpoint that a program is at.

    Attributes:
      frames: of the user, the innermost first.
      arrays: values of the operands.
      where: which element and device.
    """

    frames: list[Frame]
    arrays: list[Any]
    where: str


class _Prompts:
    """The prompts of one breakpoint.

    Args:
      stdin: see `breakpoint`.
      stdout: see there.
    """

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None) -> None:
        self.stdin, self.stdout, self.is_off = stdin, stdout, False

    def stop(self, stopped: _Stopped) -> None:
        """Asks until the user wants to go on."""
        with _prompting:
            if self.is_off:
                return
            out = self.stdout or sys.stdout
            prompt = _Prompt(stopped, self.stdin, out)
            if self.stdin is None and not _can_ask():
                prompt.show()
                prompt.do_a("")
                out.write(
                    "(no terminal to ask at: going on; run it in one, or in a "
                    "notebook)\n"
                )
                out.flush()
                return
            prompt.cmdloop()
            self.is_off = prompt.is_off


def _can_ask() -> bool:
    """Returns whether there is a terminal or a notebook to ask at."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return bool(getattr(kernel, "_allow_stdin", False))
    try:
        return bool(sys.stdin.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


class _Prompt(cmd.Cmd):
    """Commands at a breakpoint."""

    prompt = "(fxflow) "

    def __init__(self, stopped: _Stopped, stdin: TextIO | None, stdout: TextIO) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._stopped, self._depth, self.is_off = stopped, 0, False
        # What the user assigns at the prompt, by frame.
        self._known = [f.values(stopped.arrays) for f in stopped.frames]

    @property
    def _frame(self) -> Frame:
        return self._stopped.frames[self._depth]

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def preloop(self) -> None:
        """Says where the program is."""
        self.show()

    def show(self) -> None:
        """Prints the current line."""
        if not self._stopped.frames:
            return self._say("Stopped; no frame of yours is around it.")
        more = f" [{self._stopped.where}]" if self._stopped.where else ""
        head = "Stopped at" if not self._depth else "In"
        self._say(f"{head} {self._frame.place}{more}")
        if not self._frame.is_live:
            self._say(
                "(runs when the program is traced: arrays are those of that time)"
            )
        line = linecache.getline(self._frame.file, self._frame.line).strip()
        if line:
            self._say(f"-> {line}")
        return None

    def emptyline(self) -> bool:
        """Does nothing."""
        return False

    def default(self, line: str) -> None:
        """Runs an expression or a statement."""
        if line == "EOF":
            return None
        return self._evaluate(line.removeprefix("!"))

    def onecmd(self, line: str) -> bool:
        """Runs a line; the end of the input goes on."""
        if line == "EOF":
            return True
        word, _, rest = line.partition(" ")
        # A statement, also where a command is called like the variable.
        if word.isidentifier() and rest.startswith("=") and rest[1:2] != "=":
            self._evaluate(line)
            return False
        return bool(super().onecmd(line))

    def _names(self) -> dict[str, Any]:
        return self._known[self._depth] if self._known else {}

    def _evaluate(self, text: str, show: bool = True) -> None:
        scope = {"np": np}
        if self._stopped.frames:
            scope = {**scope, **self._frame.scope, **self._names()}
        before = dict(scope)
        try:
            with contextlib.redirect_stdout(self.stdout):
                try:
                    value = eval(text, scope)
                except SyntaxError:
                    exec(text, scope)
                    value = None
        except NameError as error:
            if text in _STEPS:
                return self._say(
                    "*** a compiled program does not run line by line: c goes on to "
                    "the next breakpoint"
                )
            return self._say(f"*** {type(error).__name__}: {error}")
        except Exception as error:
            self._say(f"*** {type(error).__name__}: {error}")
            return
        for name, new in scope.items():
            if name != "__builtins__" and before.get(name, self) is not new:
                self._names()[name] = new
        if value is not None:
            self._say(described(value))

    def do_p(self, line: str) -> None:
        """`p EXPRESSION`: prints its value (as the expression alone does)."""
        self._evaluate(line)

    do_pp = do_p

    def do_a(self, line: str) -> None:
        """`a`: prints all local variables."""
        for name, value in self._names().items():
            if not callable(value) and not hasattr(value, "__path__"):
                text = described(value)
                self._say(f"{name} = {text if len(text) < 200 else text[:200] + '…'}")

    do_args = do_a

    def do_l(self, line: str) -> None:
        """`l`: lists the source around the line."""
        if not self._stopped.frames:
            return
        at = self._frame.line
        for number in range(max(1, at - _CONTEXT), at + _CONTEXT + 1):
            text = linecache.getline(self._frame.file, number)
            if text:
                mark = "->" if number == at else "  "
                self._say(f"{number:4} {mark} {text.rstrip()}")

    do_list = do_l

    def do_w(self, line: str) -> None:
        """`w`: prints where the program is: all frames, the innermost last."""
        for depth, frame in reversed(list(enumerate(self._stopped.frames))):
            mark = ">" if depth == self._depth else " "
            self._say(f"{mark} {frame.place}")

    do_where = do_bt = do_w

    def do_u(self, line: str) -> None:
        """`u`: goes up, to the frame that called this one."""
        if self._depth + 1 >= len(self._stopped.frames):
            return self._say("*** This is the outermost frame")
        self._depth += 1
        return self.show()

    do_up = do_u

    def do_d(self, line: str) -> None:
        """`d`: goes down, to the frame that this one called."""
        if not self._depth:
            return self._say("*** This is the innermost frame")
        self._depth -= 1
        return self.show()

    do_down = do_d

    def do_c(self, line: str) -> bool:
        """`c`: goes on, to the next stop."""
        return True

    do_cont = do_continue = do_c

    def do_off(self, line: str) -> bool:
        """`off`: goes on; this breakpoint stops no more."""
        self.is_off = True
        return True

    def do_q(self, line: str) -> bool:
        """`q`: ends the program; `bdb.BdbQuit` is raised where it was called."""
        raise bdb.BdbQuit(f"ended at the breakpoint at {self._stopped.frames[0].place}")

    do_quit = do_exit = do_q

    def do_h(self, line: str) -> None:
        """`h`: lists the commands; a variable of that name is printed instead."""
        if not line and "h" in self._names():
            self._evaluate("h")
        else:
            self.do_help(line)


def described(value: Any) -> str:
    """Returns what a debugger prints of a value: that of an array with its type."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        text = np.array2string(np.asarray(value), threshold=64, precision=6)
        return f"{typeof(np.asarray(value))} {text}"
    return repr(value)
