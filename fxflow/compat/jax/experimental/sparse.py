"""`jax.experimental.sparse`: fxflow has no sparse arrays yet."""

from typing import Any

from fxflow.compat.jax._mirror import listen


class BCOO:
    """Sparse arrays, which cannot be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("fxflow.compat.jax: fxflow has no sparse arrays yet")

    @classmethod
    def from_scipy_sparse(cls, mat: Any, **options: Any) -> Any:
        """Raises `NotImplementedError`."""
        return cls()


__all__ = ["BCOO"]

listen(globals())
