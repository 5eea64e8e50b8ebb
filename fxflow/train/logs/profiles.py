"""`profile`: a hook that records a profile of some steps, next to the run's logs."""

from __future__ import annotations

import os
import weakref
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.core.source import warn
from fxflow.lax.axes import natural
from fxflow.lax.pytree_transfer import block_until_ready
from fxflow.profiler import ProfileOptions, start_trace, stop_trace
from fxflow.train.loop import Progress


class _Profile:
    """The hook of `profile`."""

    def __init__(
        self, folder: str, start: int, steps: int, options: ProfileOptions | None
    ) -> None:
        self._folder, self._options = folder, options
        self._start, self._stop = start, start + steps
        self._finish: weakref.finalize[Any, Any] | None = None

    def __call__(self, progress: Progress[Any]) -> None:
        if progress.step == self._start and progress.is_chief:
            block_until_ready(progress.state)
            try:
                start_trace(self._folder, profiler_options=self._options)
            except (OSError, RuntimeError) as error:
                warn(f"profile: it cannot be recorded: {error}")
                return
            # If the run ends early, the profile is still written.
            self._finish = weakref.finalize(self, _finish, progress)
        elif progress.step == self._stop and self._finish is not None:
            self._finish()


def _finish(progress: Progress[Any]) -> None:
    """Ends a profile after the steps that were started have finished."""
    arrays = [x for x in tree.leaves(progress.state) if isinstance(x, Array)]
    # The state may have been donated after the run.
    block_until_ready([x for x in arrays if not x.is_deleted()])
    stop_trace()


def profile(
    folder: str | os.PathLike[str],
    *,
    start: int = 10,
    steps: int = 5,
    options: ProfileOptions | None = None,
) -> _Profile:
    """Returns a hook that records a profile of a few steps of a run.

    Args:
      folder: the folder of the run's `tensorboard` sink. TensorBoard shows the profile
        on its page Profile, if the package `xprof` is installed.
      start: the step after which the profile starts; the first steps compile.
      steps: the number of steps to record.
      options: what to record; see `fxflow.profiler`.

    Returns:
      A hook for `loop.run`; process 0 records.

    Raises:
      ArgumentError: `start` is negative, or `steps` not positive.

    Example:
      >>> folder = tempfile.mkdtemp()
      >>> add = fxflow.jit(lambda state, batch: (state + batch, {}))
      >>> hook = train.logs.profile(folder, start=2, steps=3)
      >>> _ = train.loop.run(add, fnp.zeros(()), [1.0] * 8, hooks=[hook])
      >>> [path.name[-9:] for path in pathlib.Path(folder).rglob("*.pb")]
      ['xplane.pb']
    """
    start = natural("profile", "start", start, 0)
    steps = natural("profile", "steps", steps)
    return _Profile(os.fspath(folder), start, steps, options)
