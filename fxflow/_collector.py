"""Python's garbage collector, kept from an import that makes no garbage.

An import makes tens of thousands of functions, classes and tables, all of which stay.
The collector looks at them again and again while they become more: a tenth of the time
that `import fxflow` takes, NumPy's and jaxlib's part of it included.
"""

from __future__ import annotations

import gc


class Paused:
    """Has the collector rest until `resume`, or until this object goes.

    An import that fails drops the module, and this with it.

    Example:
      >>> paused = Paused()
      >>> paused.resume()
    """

    __slots__ = ("_was_enabled",)

    def __init__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def resume(self) -> None:
        """Lets the collector work again, if it did before."""
        if not self._was_enabled:
            return
        self._was_enabled = False
        if not gc.get_freeze_count():  # what the user froze stays frozen
            # Makes all objects old without looking at them, which the next collection
            # would otherwise do at once.
            gc.freeze()
            gc.unfreeze()
        gc.enable()

    def __del__(self) -> None:
        self.resume()
