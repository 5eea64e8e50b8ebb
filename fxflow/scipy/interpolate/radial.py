"""Sums of radial functions around points: SciPy's older class."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.spatial.distance import cdist


def _thin_plate(r: Array, _: Any) -> Array:
    some = r > 0
    return fnp.where(some, r * r * fnp.log(fnp.where(some, r, 1)), 0)


#: Functions of the distance and the scale.
_FUNCTIONS: dict[str, Any] = {
    "multiquadric": lambda r, e: fnp.sqrt((r / e) ** 2 + 1),
    "inverse_multiquadric": lambda r, e: 1 / fnp.sqrt((r / e) ** 2 + 1),
    "gaussian": lambda r, e: fnp.exp(-((r / e) ** 2)),
    "linear": lambda r, e: r,
    "cubic": lambda r, e: r**3,
    "quintic": lambda r, e: r**5,
    "thin_plate": _thin_plate,
}
_ALIASES = {
    "inverse": "inverse_multiquadric",
    "inverse multiquadric": "inverse_multiquadric",
    "thin-plate": "thin_plate",
}


@register_pytree_node_class
class Rbf:
    """A sum of functions of the distance to points; `RBFInterpolator` is newer.

    It is a pytree: it works under `jit` and `vmap`, and is differentiable in the
    points, the values, `epsilon`, `smooth` and the point of evaluation.

    Args:
      *args: real array-likes of one size: each coordinate of the points, and last the
        values, in the mode "N-D" array-like[n, m].
      function: "multiquadric", "inverse", "gaussian", "linear", "cubic", "quintic",
        "thin_plate", or a function of the distances, or of the object and them.
      epsilon: the scale of "multiquadric", "inverse" and "gaussian"; None is about the
        mean distance of neighbours.
      smooth: how far values may be missed; 0 for interpolation.
      norm: a metric of `cdist`, as a string or as a function of two vectors.
      mode: "1-D", values are numbers, or "N-D", vectors.

    Attributes:
      N: the number of points.
      xi: the points, array[d, n].
      di: the values.
      nodes: the weights of the functions.
      epsilon: as given, or chosen.
      smooth: as given.
      function: as given.
      norm: as given.
      mode: as given.

    Raises:
      ArgumentError: unknown function or mode.
      ShapeError: the sizes differ.

    Example:
      >>> x = np.arange(5.0)
      >>> Rbf(x, x**2)(np.array([1.0, 2.0])).round(3)
      Array([1., 4.], dtype=float32)

    Source: `scipy.interpolate.Rbf`.
    """

    xi: Array
    di: Array
    epsilon: Any
    smooth: Any
    nodes: Array
    function: Any
    norm: Any
    mode: str

    def __init__(
        self,
        *args: Any,
        function: Any = "multiquadric",
        epsilon: Any = None,
        smooth: Any = 0.0,
        norm: Any = "euclidean",
        mode: str = "1-D",
    ) -> None:
        name = "Rbf"
        if mode not in ("1-D", "N-D"):
            raise ArgumentError(f'{name}: mode must be "1-D" or "N-D", got {mode!r}')
        if len(args) < 2:
            raise ArgumentError(
                f"{name}: expected coordinates and values, got {args!r}"
            )
        *parts, values = promote_inexact(name, *(fnp.asarray(a) for a in args))
        parts = [fnp.ravel(v) for v in parts]
        values = fnp.ravel(values) if mode == "1-D" else values
        sizes = {v.aval.size for v in parts}
        if len(sizes) != 1 or values.aval.ndim != 1 + (mode == "N-D"):
            sizes = set()
        if sizes != {values.aval.shape[0] if values.aval.ndim else -1} or 0 in sizes:
            listed = ", ".join(str(v.aval) for v in (*parts, values))
            raise ShapeError(
                f"{name}: coordinates and values must have one size, not 0, got "
                f"{listed}"
            )
        if isinstance(function, str):
            known = function.lower()
            function = _ALIASES.get(known, known)
            if function not in _FUNCTIONS:
                listed = ", ".join(f'"{f}"' for f in _FUNCTIONS)
                raise ArgumentError(
                    f"{name}: function must be callable or one of {listed}, got "
                    f"{function!r}"
                )
        elif not callable(function):
            raise ArgumentError(
                f"{name}: function must be callable or a name, got {function!r}"
            )
        self.function, self.norm, self.mode = function, norm, mode
        self.xi, self.di, self.smooth = fnp.real(fnp.stack(parts)), values, smooth
        n = self.xi.shape[1]
        if epsilon is None:
            edges = fnp.max(self.xi, 1) - fnp.min(self.xi, 1)
            some = edges > 0
            count = fnp.maximum(fnp.sum(some), 1).astype(edges.dtype)
            logs = fnp.sum(fnp.log(fnp.where(some, edges, 1)))
            epsilon = fnp.exp((logs - float(np.log(n))) / count)
        self.epsilon = epsilon
        matrix = self.A.astype(values.dtype)
        self.nodes = fnp.linalg.solve(matrix, values)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays and the static data."""
        arrays = (self.xi, self.di, self.epsilon, self.smooth, self.nodes)
        return arrays, (self.function, self.norm, self.mode)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Rbf:
        """Rebuilds an interpolator from its parts."""
        out = object.__new__(cls)
        out.xi, out.di, out.epsilon, out.smooth, out.nodes = children
        out.function, out.norm, out.mode = aux
        return out

    @property
    def N(self) -> int:
        """The number of points."""
        return int(self.xi.shape[1])

    @property
    def A(self) -> Array:
        """The matrix of the functions at the points, array[n, n]."""
        eye = fnp.eye(self.N, dtype=self.xi.dtype)
        values = self._values(cdist(self.xi.T, self.xi.T, self.norm))
        return fnp.asarray(values - eye * self.smooth)

    def _values(self, r: Array) -> Array:
        if isinstance(self.function, str):
            return fnp.asarray(_FUNCTIONS[self.function](r, self.epsilon))
        takes = len(inspect.signature(self.function).parameters)
        out = self.function(r) if takes == 1 else self.function(self, r)
        out = fnp.asarray(out)
        if out.shape != r.shape:
            raise ArgumentError(
                f"Rbf: function must return an array like its argument, {r.aval}, got "
                f"{out.aval}"
            )
        return out

    def __call__(self, *args: Any) -> Array:
        """Returns values.

        Args:
          *args: real array-likes[*s], one for each coordinate.

        Returns:
          Array[*s], or [*s, m] in the mode "N-D".

        Raises:
          ShapeError: there are not as many coordinates, or their shapes differ.
        """
        parts = promote_inexact("Rbf", *(fnp.asarray(a) for a in args), self.xi)[:-1]
        if len(parts) != self.xi.shape[0] or len({v.aval.shape for v in parts}) != 1:
            listed = ", ".join(str(v.aval) for v in parts)
            raise ShapeError(
                f"Rbf: expected {self.xi.shape[0]} coordinates of one shape, got "
                f"{listed}"
            )
        at = fnp.stack([fnp.ravel(v) for v in parts], -1)
        rows = self._values(cdist(at, self.xi.T, self.norm))
        out = fnp.matmul(rows.astype(self.nodes.dtype), self.nodes, precision="highest")
        return fnp.reshape(out, (*parts[0].aval.shape, *self.nodes.shape[1:]))
