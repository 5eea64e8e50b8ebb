"""Python's collector of garbage, kept from what a server has loaded.

It walks through all objects that there are, again and again: tens of milliseconds for
the modules of a server or a model, in the midst of a batch. What is there when all is
loaded stays, so that it need not be looked at.
"""

from __future__ import annotations

import gc

#: Objects that are made, and not freed, between two looks at the newest. Python's 700
#: are those of a few tens of requests that wait, and are no garbage.
_BETWEEN = 10_000


def settle() -> None:
    """Collects now, and from now on only what is made later.

    To be called when a process has loaded what it is to serve, and again when it has
    loaded something else: what was replaced is collected then.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_BETWEEN, *gc.get_threshold()[1:])
