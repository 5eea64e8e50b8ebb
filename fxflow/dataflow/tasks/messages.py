"""What a controller and tasks say to each other.

The controller says `register` once for each program, and `run` for each step; tasks
answer `registered` and `done`. Values go from process to process. A message's header
has the numbers of the program (`worker`) and of the step (`sequence`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow.distributed.messages.codec import Limits, fields_of

#: Descriptions of programs of 100,000 fragments take some megabytes.
LIMITS = Limits(text=64 << 20, arrays=1 << 20, size=1 << 40)


@fields_of("meet")
class Meet(NamedTuple):
    """The first message in both directions of a connection.

    Attributes:
      number: of the process: a task's in the cluster, or -1 for the controller.
      session: which the controller drew; empty in a task without one.
      version: of fxflow.
      jaxlib: version of jaxlib.
      job: of the task.
      task: number of the task in its job.
      devices: platforms of the task's devices.
      addresses: of all tasks, from the controller.
      deadline: seconds that a wait lasts at most, from the controller.
      refused: why this process will not work with the other; empty if it will.
      memory: bytes of each of the task's devices; 0 if unknown.
    """

    number: int
    session: str
    version: str
    jaxlib: str
    job: str
    task: int
    devices: list[str]
    addresses: list[str]
    deadline: float
    refused: str
    memory: list[int]


@fields_of("renew")
class Renew(NamedTuple):
    """The session goes on with fewer tasks, under another name; the answer repeats it.

    Attributes:
      session: its name from then.
      tasks: that stay; connections to others end.
    """

    session: str
    tasks: list[int]


@fields_of("register")
class Register(NamedTuple):
    """A task's part of a program; programs and captured values travel as arrays.

    Attributes:
      name: of the program.
      part: see `rows.Part`.
      programs: a `rows.ProgramRow` for each array `p0`, `p1`, …
    """

    name: str
    part: list[Any]
    programs: list[Any]


@fields_of("registered")
class Registered(NamedTuple):
    """Whether a task has compiled its part and found its peers.

    Attributes:
      error: why not; empty if it has.
    """

    error: str


#: The array of `Run` that every message has.
NUMBERS = "numbers"
#: The array of `Done` with times.
TIMES = "times"


@fields_of("run")
class Run(NamedTuple):
    """A step: small arguments travel with it.

    The array `NUMBERS` has, as int64, the number of the step's first result; 1 if its
    fragments' times are measured, else 0; for each argument that the task has, its
    number there; and numbers of values that are not needed any more, or -1. So the text
    of the message is the same in each step, and need not be encoded and read again.
    """


@fields_of("value")
class Value(NamedTuple):
    """A value for a fragment of the receiver.

    Attributes:
      edge: number of the edge in the program.
    """

    edge: int


@fields_of("want")
class Want(NamedTuple):
    """How many of its values the receiver has room for.

    Attributes:
      most: of the edges between the two processes, in the order in which the receiver
        takes them.
    """

    most: int


@fields_of("done")
class Done(NamedTuple):
    """A task has computed its part of a step; small results travel with it.

    If the times of fragments are measured, the array `TIMES` has a row for each: its
    number, and its start and end in seconds since the part began.
    """


@fields_of("failed")
class Failed(NamedTuple):
    """A task's part of a step failed.

    Attributes:
      error: the message of the error.
      fragment: in which it failed; -1: in none.
      edge: the value that it waited for too long; -1: none.
    """

    error: str
    fragment: int
    edge: int


@fields_of("stop")
class Stop(NamedTuple):
    """A step failed elsewhere: what has not started of it is not wanted."""


@fields_of("free")
class Free(NamedTuple):
    """Values that are not needed any more.

    Attributes:
      frees: their numbers.
      programs: numbers of programs that are not needed any more.
    """

    frees: list[int]
    programs: list[int]


@fields_of("fetch")
class Fetch(NamedTuple):
    """Asks for a value.

    Attributes:
      handle: its number.
    """

    handle: int


@fields_of("fetched")
class Fetched(NamedTuple):
    """The value that was asked for.

    Attributes:
      handle: its number.
      error: why there is none; empty if there is one.
    """

    handle: int
    error: str


@fields_of("hold")
class Hold(NamedTuple):
    """A value to keep, from the controller; the answer is `Fetched` without a value.

    Attributes:
      handle: its number.
      place: where; see `rows.PlaceRow`.
    """

    handle: int
    place: list[Any]


@fields_of("doing")
class Doing(NamedTuple):
    """Asks what a task is doing."""


@fields_of("doing_ok")
class DoingOk(NamedTuple):
    """What a task is doing.

    Attributes:
      states: for each thread that has work: program, step, fragment, the edge that it
        waits for (-1: it runs the fragment), and for how many seconds.
      compiling: name of the program that is being compiled; empty: none.
      arrays: the number of arrays that the task holds between steps.
    """

    states: list[list[float]]
    compiling: str
    arrays: int
