"""Interrupts at every place at which Python handles signals.

Python looks for signals at the start of a function, after a call of a C function and
where a loop jumps back. A profile function is called at the first two of these: raising
KeyboardInterrupt there is what Ctrl-C does, without its chance.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Interrupter:
    """Interrupts a call at its n-th event.

    Attributes:
      events: how many there were.
      place: where it was interrupted.
    """

    def __init__(self, at: int = 0) -> None:
        self.at, self.events, self.place = at, 0, ""

    def _profile(self, frame: Any, event: str, argument: Any) -> None:
        if event not in ("call", "c_return"):
            return
        # Python's own import machinery would keep the import lock for ever: then every
        # other thread that imports something waits for it, in whatever test comes next.
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return
        self.events += 1
        if self.events == self.at:
            code = frame.f_code
            after = f" after {argument.__name__}" if event == "c_return" else ""
            self.place = f"{code.co_filename}:{frame.f_lineno} {code.co_name}{after}"
            sys.setprofile(None)
            raise KeyboardInterrupt

    def call(self, function: Callable[[], Any]) -> Any:
        """Returns what the function returns; None if it was interrupted."""
        sys.setprofile(self._profile)
        try:
            return function()
        except KeyboardInterrupt:
            return None
        finally:
            sys.setprofile(None)
