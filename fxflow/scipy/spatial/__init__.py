"""Geometry: `fxflow.scipy.spatial`."""

from fxflow._names import answer as _answer

_answer(globals(), (), lazy=("transform",))
