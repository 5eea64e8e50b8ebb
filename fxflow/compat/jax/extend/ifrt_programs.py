"""`jax.extend.ifrt_programs`: programs of remote runtimes, which fxflow has not."""

from typing import Any

from fxflow.compat.jax._mirror import listen

ifrt_programs: Any = None

listen(globals())
