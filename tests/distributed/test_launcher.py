"""The base class of the launchers; see also test_launch and test_jobs."""

import argparse
import signal
import sys
import time

from fxflow.distributed.children import Child
from fxflow.distributed.launcher import Launcher


class Two(Launcher):
    """Starts a process that fails and a process that waits."""

    def start(self) -> None:
        for number, code in enumerate(("raise SystemExit(4)", "input()")):
            command = [
                sys.executable,
                "-c",
                f"import time; time.sleep({number}); {code}",
            ]
            self.children[number] = Child(
                number, command, {}, self.output, label="p", ended=self.wake
            )

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        if self.status is None:
            self.status = code
            self.signal_all(signal.SIGTERM)
        return True


def test_the_first_failure_decides_the_exit_status() -> None:
    launcher = Two(argparse.Namespace(no_color=True, timeout=None))
    assert launcher.run() == 4
    assert launcher.children == {}
    assert len(launcher.finished) == 2


def test_the_time_is_up() -> None:
    launcher = Two(argparse.Namespace(no_color=True, timeout=0.05))
    assert launcher.run() in (4, 124)


class Again(Launcher):
    """Restarts a process that always fails at once."""

    starts_left = 4

    def start(self) -> None:
        self.children[0] = self.begin()

    def begin(self) -> Child:
        self.children[0] = Child(0, ["false"], {}, self.output, ended=self.wake)
        return self.children[0]

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        self.starts_left -= 1
        if self.starts_left:
            self.start_again(self.finished[-1], self.begin)
        return False


def test_quick_failures_delay_restarts() -> None:
    launcher = Again(argparse.Namespace(no_color=True, timeout=None))
    started = time.monotonic()
    launcher.run()
    assert len(launcher.finished) == 4
    assert time.monotonic() - started >= 0.3  # 0, 0.1 and 0.2 s
    assert [child.backoff.failures for child in launcher.finished] == [0, 1, 2, 3]
