"""`jax.debug`."""

import pdb
from typing import Any

from fxflow.compat.jax._mirror import mirror
from fxflow.debug import callback

mirror(globals(), "fxflow.debug")


def breakpoint(**options: Any) -> None:
    """Stops in Python's debugger when the program runs here.

    Args:
      **options: JAX's, which have no effect.
    """
    callback(lambda: pdb.set_trace())
