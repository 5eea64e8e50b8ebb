"""The class of Ray actors, without Ray."""

import os
import signal
import sys
import time
from pathlib import Path

from fxflow.distributed.ray_leader import Leader


def order(text: str, folder: object = ".", **environment: str) -> dict[str, object]:
    command = [sys.executable, "-I", "-S", "-u", "-c", text]
    return {"command": command, "environment": environment, "folder": str(folder)}


def followed(leader: Leader, run: int) -> tuple[bytes, bytes, int]:
    """Returns what a process wrote to both streams, and its exit status."""
    written = {1: b"", 2: b""}
    end = time.monotonic() + 30
    while time.monotonic() < end:
        answer = leader.follow(run)
        assert answer is not None
        for which, piece in answer[0]:
            written[which] += piece
        if answer[1] is not None:
            return written[1], written[2], answer[1]
    raise AssertionError(f"it did not end; so far: {written}")


def test_output_and_status_belong_to_a_start(tmp_path: Path) -> None:
    leader = Leader()
    assert leader.follow(1) is None  # no process was started
    text = (
        "import os, sys; print(os.environ['SAID'], os.getcwd()); "
        "sys.stderr.write('oh'); sys.exit(3)"
    )
    first = order(text, tmp_path, SAID="yes")
    leader.begin(1, first)
    leader.begin(1, first)  # a repeated call, as Ray makes it, starts no second process
    assert followed(leader, 1) == (f"yes {tmp_path}\n".encode(), b"oh", 3)
    leader.begin(2, order("print(2)", tmp_path / "none"))
    out, err, code = followed(leader, 2)
    assert (out, code) == (b"2\n", 0)
    assert b"none: no such folder; running in" in err
    assert leader.follow(1) is None


def test_signals_are_for_one_start() -> None:
    leader = Leader()
    child = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid)"
    leader.begin(1, order(f"{child}; import time; time.sleep(60)"))
    written = b""
    while not written:  # the process and its child run
        answer = leader.follow(1)
        assert answer is not None and answer[1] is None
        written = b"".join(piece for _, piece in answer[0])
    leader.send(2, signal.SIGKILL)  # for another start
    answer = leader.follow(1)
    assert answer is not None and answer[1] is None
    leader.send(1, signal.SIGTERM)
    assert followed(leader, 1)[2] == -signal.SIGTERM
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{int(written)}") and time.monotonic() < end:
        stat = Path(f"/proc/{int(written)}/stat")
        if ") Z " in stat.read_text():
            break  # dead, but not yet reaped
        time.sleep(0.01)
    else:
        assert not os.path.exists(f"/proc/{int(written)}")


def test_an_interrupt_ends_the_process() -> None:
    """The actor ignores interrupts, as Ray's actors do."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        leader = Leader()
        leader.begin(1, order("import time; print('up'); time.sleep(60)"))
        while not (answer := leader.follow(1)) or not answer[0]:
            assert answer is not None and answer[1] is None
        leader.send(1, signal.SIGINT)
        _, err, code = followed(leader, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == -signal.SIGINT and b"KeyboardInterrupt" in err


def test_unfetched_output_is_bounded() -> None:
    leader = Leader()
    leader.begin(1, order("import sys; sys.stdout.write('x' * (6 << 20))"))
    end = time.monotonic() + 30
    while leader._held < 4 << 20 and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)
    assert 4 << 20 <= leader._held <= (4 << 20) + (1 << 16)
    out, _, code = followed(leader, 1)
    assert (len(out), code) == (6 << 20, 0)
