"""Clusters: `fxflow.scipy.cluster.vq`, `fxflow.scipy.cluster.hierarchy`."""

from fxflow._names import answer as _answer

_answer(globals(), (), lazy=("hierarchy", "vq"))
