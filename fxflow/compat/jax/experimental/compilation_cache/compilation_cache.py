"""`jax.experimental.compilation_cache.compilation_cache`: programs kept on disk."""

from __future__ import annotations

import os

from fxflow._config import config as options
from fxflow.compat.jax._mirror import listen
from fxflow.core.caches import clear_caches


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Sets the directory that compiled programs are kept in.

    Args:
      path: the directory; it is made when it is first written to.
    """
    options.cache_dir = os.fspath(path)


def reset_cache() -> None:
    """Forgets the programs in memory, so that the disk is asked again."""
    clear_caches()


__all__ = ["reset_cache", "set_cache_dir"]

listen(globals())
