"""Linear systems that are given as functions: `fxflow.scipy.sparse.linalg`."""

from fxflow._names import answer as _answer
from fxflow.scipy.sparse import linalg

__all__ = ["linalg"]

_answer(globals(), __all__)
