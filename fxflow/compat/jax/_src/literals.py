"""`jax._src.literals`: classes of JAX's literals, of which nothing is an instance."""

from fxflow.compat.jax._mirror import listen


class LiteralArray:
    """What JAX keeps literals in; fxflow's are arrays of NumPy."""


class TypedNdArray:
    """Likewise."""


listen(globals())
