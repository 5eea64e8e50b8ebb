"""Linear systems that are given as functions: `fxflow.scipy.sparse.linalg`."""

from fxflow.scipy.sparse import linalg

__all__ = ["linalg"]
