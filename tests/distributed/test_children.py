import io
import shutil
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from fxflow.distributed.children import Child, EndingFilter, Lines, Output


@pytest.fixture
def output() -> Iterator[Output]:
    yield Output(False)


def end_of(child: Child, seconds: float = 20) -> int:
    end = time.monotonic() + seconds
    while (code := child.poll()) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert code is not None
    child.finish()
    return code


def test_prefixes_have_the_label_and_a_color() -> None:
    assert Output(False).mark(3) == "[3] "
    assert Output(True).mark(0) == "\033[36m[0]\033[0m "
    stream = io.StringIO()
    Output(False).write(stream, "[0] ", b"a\xff\r\n")
    assert stream.getvalue() == "[0] a\ufffd\n"
    stream.close()
    Output(False).write(stream, "", b"unread")


def test_output_and_exit_status_are_reported(
    output: Output, capfd: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import os, sys\n"
        "print(os.environ['A'])\n"
        "end = 'peer ranks. Expected number of connected peer ranks is : 3'\n"
        "print('[Gloo] Rank 0 is connected to 3', end)\n"
        "print('[Gloo] Rank [Gloo] Rank 2 is connected to 3', end)\n"
        "print('2 is connected to 3', end)\n"
        "print('no end', end='', file=sys.stderr)\n"
        "sys.exit(4)\n"
    )
    child = Child(2, [sys.executable, "-c", code], {"A": "x"}, output)
    assert end_of(child) == 4
    found = capfd.readouterr()
    assert (found.out, found.err) == ("[2] x\n", "[2] no end\n")


def test_a_missing_command_is_reported(
    output: Output, capfd: pytest.CaptureFixture[str]
) -> None:
    assert end_of(Child(0, ["/no/such/command"], {}, output)) == 127
    assert "/no/such/command: No such file" in capfd.readouterr().err


def test_signals_reach_descendants(output: Output) -> None:
    child = Child(0, ["sh", "-c", "sleep 60 & sleep 60"], {}, output)
    time.sleep(0.3)
    child.send(signal.SIGTERM)
    assert end_of(child) == -signal.SIGTERM


def test_finish_kills_a_process_that_ignores_signals(output: Output) -> None:
    child = Child(0, ["sh", "-c", "trap '' TERM; echo on; sleep 60"], {}, output)
    time.sleep(0.3)
    child.send(signal.SIGTERM)
    time.sleep(0.1)
    assert child.poll() is None
    child.finish()
    assert child.poll() == -signal.SIGKILL


INTERRUPTED = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    time.sleep(60)
KeyboardInterrupt
"""
LOST = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    step(x)
ValueError: gloo

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 3, in <module>
fxflow.errors.DistributedError: process 1 (h:1) is lost
"""
OWN = b"""Traceback (most recent call last):
  File "train.py", line 9, in save
ZeroDivisionError: division by zero
"""


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (INTERRUPTED, b""),
        (LOST, b""),
        (OWN, OWN),
        (b"saved\n" + INTERRUPTED + b"bye\n", b"saved\nbye\n"),
        (INTERRUPTED + OWN, OWN),
        (b"fxflow: process 1 (h:1) is lost: its connection was closed; x\n", b""),
        (b"\nfxflow: saved\n", b"\nfxflow: saved\n"),
        (OWN[:60], OWN[:60]),
    ],
)
def test_reports_of_being_ended_are_dropped(said: bytes, written: bytes) -> None:
    ending = EndingFilter()
    lines = [kept for line in io.BytesIO(said) for kept in ending.kept(line)]
    assert b"".join([*lines, *ending.rest()]) == written


@pytest.mark.parametrize(
    ("pieces", "ended", "live"),
    [
        ([b"a\nb"], [b"a\n"], b""),
        ([b"a", b"b\n"], [b"ab\n"], b""),
        ([b"a\r\n"], [b"a\n"], b""),
        ([b"\n\n"], [b"\n", b"\n"], b""),
        ([b"10%\r20%\r"], [], b"20%"),  # the carriage return after the text
        ([b"\r10%", b"\r20%"], [], b"20%"),  # the carriage return before the text
        ([b"\r10%", b"0", b"\r"], [], b"10%0"),
        ([b"10%\r", b"20%", b"\r30%\n", b"on"], [b"30%\n"], b""),
        (
            [b"\r10%", b"\r   \rsaid\n", b"\r20%"],
            [b"said\n"],
            b"20%",
        ),  # tqdm's
    ],
)
def test_pieces_of_output_are_joined_to_lines(
    pieces: list[bytes], ended: list[bytes], live: bytes
) -> None:
    lines = Lines()
    assert [line for piece in pieces for line in lines.ended(piece)] == ended
    assert lines.live == live


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_live_line_is_overwritten_on_a_terminal() -> None:
    output, stream = Output(False), Terminal()
    output.show(stream, "[0] ", b"10%")
    output.show(stream, "[1] ", b"5%")  # held
    output.write(stream, "[1] ", b"said\n")
    output.show(stream, "[0] ", b"10%")  # the line has not changed
    output.show(stream, "[0] ", "é".encode()[:1] + b"x" * 500)
    output.write(stream, "[0] ", b"100%\n")
    output.show(stream, "[1] ", b"9%")
    erase = "\r\033[K"
    first, *rest = stream.getvalue().split(erase)
    room = shutil.get_terminal_size().columns - 5
    assert first == ""
    assert rest == [
        "[0] 10%",
        "[1] said\n",
        "[0] 10%",
        "[0] " + "x" * room,
        "[0] 100%\n",
        "[1] 9%",
    ]


def test_states_of_a_live_line_are_written_to_a_file() -> None:
    output, stream = Output(False), io.StringIO()
    output.show(stream, "[0] ", b"10%")
    output.write(stream, "[1] ", b"said\n")
    output.write(stream, "[1] ", b"again\n")
    output.show(stream, "[0] ", b"20%")
    output.write(stream, "[0] ", b"100%\n")
    output.ending = True
    output.show(stream, "[0] ", b"not any more")
    want = "\r[0] 10%\n[1] said\n[1] again\n\r[0] 20%\r[0] 100%\n"
    assert stream.getvalue() == want
