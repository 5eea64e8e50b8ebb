"""The part that all launchers share; see also test_launch and test_jobs."""

import argparse
import signal
import sys

from fxflow.distributed.children import Child
from fxflow.distributed.launcher import Launcher


class Two(Launcher):
    """Starts a process that fails and one that waits."""

    def start(self) -> None:
        for number, code in enumerate(("raise SystemExit(4)", "input()")):
            command = [
                sys.executable,
                "-c",
                f"import time; time.sleep({number}); {code}",
            ]
            self.children[number] = Child(number, command, {}, self.output, label="p")

    def ended(self, number: int, code: int, ending: bool) -> bool:
        if self.status is None:
            self.status = code
            self.tell_all(signal.SIGTERM)
        return True


def test_the_first_end_decides() -> None:
    launcher = Two(argparse.Namespace(no_color=True, timeout=None))
    assert launcher.run() == 4
    assert launcher.children == {}
    assert len(launcher.finished) == 2


def test_the_time_is_up() -> None:
    launcher = Two(argparse.Namespace(no_color=True, timeout=0.05))
    assert launcher.run() in (4, 124)
