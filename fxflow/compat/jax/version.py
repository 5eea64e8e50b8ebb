"""The version of JAX whose names and meanings these are."""

__version__ = "0.10.2"
__version_info__: tuple[int, int, int] = (0, 10, 2)
