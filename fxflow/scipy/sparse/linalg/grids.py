"""The Laplacian of a rectangular grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.scipy.sparse.linalg.interface import LinearOperator
from fxflow.sparse.array import SparseArray
from fxflow.sparse.construction import coo_array

_BOUNDARIES = ("dirichlet", "neumann", "periodic")


class LaplacianNd(LinearOperator):
    """The Laplacian of a uniform rectangular grid, and its eigenpairs.

    The sum over all axes of second differences with a step of 1, of vectors that are
    grids in row-major order. It is symmetric and not positive.

    Args:
      grid_shape: the numbers of points along the axes. Static.
      boundary_conditions: "neumann", "dirichlet" or "periodic".
      dtype: dtype of the matrix; products have the common dtype of it and the vector.

    Attributes:
      grid_shape: the numbers of points.
      boundary_conditions: as it was given.

    Raises:
      ArgumentError: there is no such condition, or a number of points is not positive.

    Special cases:
      An axis of one point changes nothing, except with "dirichlet".

    Example:
      >>> grid = LaplacianNd((3,))
      >>> grid.toarray().tolist()
      [[-1, 1, 0], [1, -2, 1], [0, 1, -1]]
      >>> grid.eigenvalues()
      Array([-3., -1.,  0.], dtype=float32)

    Source: `scipy.sparse.linalg.LaplacianNd`.
    """

    grid_shape: tuple[int, ...]
    boundary_conditions: str

    def __init__(
        self,
        grid_shape: Any,
        *,
        boundary_conditions: str = "neumann",
        dtype: Any = np.int8,
    ) -> None:
        """Makes the operator."""
        name = "LaplacianNd"
        if boundary_conditions not in _BOUNDARIES:
            raise ArgumentError(
                f"{name}: boundary_conditions must be one of "
                f"{', '.join(map(repr, _BOUNDARIES))}, got {boundary_conditions!r}"
            )
        given = grid_shape if isinstance(grid_shape, tuple | list) else (grid_shape,)
        self.grid_shape = tuple(natural(name, "grid_shape", n) for n in given)
        self.boundary_conditions = boundary_conditions
        n = math.prod(self.grid_shape)
        super().__init__((n, n), self._image, self._image, dtype=dtype)

    def _image(self, x: Any) -> Array:
        """Returns the product with a vector."""
        grid = fnp.reshape(fnp.asarray(x), self.grid_shape)
        grid = grid.astype(fnp.result_type(grid, self.dtype))
        out = fnp.zeros_like(grid)
        for axis, n in enumerate(self.grid_shape):
            if self.boundary_conditions == "periodic":
                sides = [fnp.roll(grid, shift, axis) for shift in (1, -1)]
            else:
                # Outside of the grid is 0, or the value at the edge.
                mode = "edge" if self.boundary_conditions == "neumann" else "constant"
                width = [(0, 0)] * grid.ndim
                width[axis] = (1, 1)
                wide = fnp.pad(grid, width, mode=mode)
                sides = [
                    fnp.take(wide, np.arange(n) + shift, axis=axis) for shift in (0, 2)
                ]
            out = out + (sides[0] + sides[1] - 2 * grid)
        return fnp.ravel(out)

    def tosparse(self) -> SparseArray:
        """Returns the matrix as a sparse csr array."""
        places = np.arange(self.shape[0]).reshape(self.grid_shape)
        rows, cols = [places.ravel()], [places.ravel()]
        values = [np.full(self.shape[0], -2 * len(self.grid_shape))]
        for axis, n in enumerate(self.grid_shape):
            for shift in (-1, 1):
                to = np.arange(n) + shift
                inside = (to >= 0) & (to < n)
                if self.boundary_conditions == "periodic":
                    to, inside = to % n, np.ones(n, bool)
                elif self.boundary_conditions == "neumann":
                    to, inside = np.clip(to, 0, n - 1), np.ones(n, bool)
                rows.append(np.compress(inside, places, axis).ravel())
                cols.append(np.take(places, to[inside], axis).ravel())
                values.append(np.ones(rows[-1].size, int))
        row, col, value = map(np.concatenate, (rows, cols, values))
        pair, inverse = np.unique(row * self.shape[0] + col, return_inverse=True)
        total = np.bincount(inverse, value, len(pair)).astype(self.dtype)
        at = (pair // self.shape[0], pair % self.shape[0])
        made: SparseArray = coo_array((fnp.asarray(total), at), shape=self.shape)
        return made.tocsr()

    def toarray(self) -> Array:
        """Returns the matrix."""
        return self.tosparse().todense()

    def _order(self, m: int | None) -> tuple[Any, list[tuple[int, ...]]]:
        """Returns the m eigenvalues nearest to 0, ascending, and which ones they are.

        Those are numbers of one eigenvector along each axis.
        """
        name = "LaplacianNd: m"
        least = math.prod(self.grid_shape)
        m = least if m is None else min(natural(name, "m", m), least)
        # Along an axis the values fall: m of them are enough.
        shape = tuple(min(n, m) for n in self.grid_shape)
        total = np.zeros(shape)
        for axis, n in enumerate(self.grid_shape):
            j = np.arange(shape[axis])
            if self.boundary_conditions == "dirichlet":
                angle = np.pi * (j + 1) / (2 * (n + 1))
            elif self.boundary_conditions == "neumann":
                angle = np.pi * j / (2 * n)
            else:
                angle = np.pi * ((j + 1) // 2) / n
            values = -4 * np.sin(angle) ** 2
            total += values.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        order = np.argsort(total.ravel(), kind="stable")[-m:]
        numbers = zip(*np.unravel_index(order, shape), strict=True)
        return total.ravel()[order], [tuple(map(int, one)) for one in numbers]

    def eigenvalues(self, m: int | None = None) -> Array:
        """Returns eigenvalues.

        Args:
          m: how many, those that are nearest to 0; None is all.

        Returns:
          Float array[m], ascending.

        Raises:
          ArgumentError: `m` is not positive.
        """
        return fnp.asarray(self._order(m)[0])

    def eigenvectors(self, m: int | None = None) -> Array:
        """Returns eigenvectors.

        Args:
          m: how many, those of the eigenvalues nearest to 0; None is all.

        Returns:
          Float array[n, m]: columns of norm 1, in the order of `eigenvalues`.

        Raises:
          ArgumentError: `m` is not positive.
        """
        columns = []
        for one in self._order(m)[1]:
            column = np.ones(1)
            for j, n in zip(one, self.grid_shape, strict=True):
                column = np.kron(column, self._along(j, n))
            columns.append(column)
        return fnp.asarray(np.stack(columns, 1))

    def _along(self, j: int, n: int) -> np.ndarray[Any, Any]:
        """Returns eigenvector j of an axis of n points."""
        i = np.arange(n)
        if self.boundary_conditions == "dirichlet":
            found = np.sin(np.pi * (i + 1) * (j + 1) / (n + 1))
        elif self.boundary_conditions == "neumann":
            found = np.cos(np.pi * (i + 0.5) * j / n)
        elif j == 0:
            found = np.ones(n)
        elif j + 1 == n and n % 2 == 0:
            found = np.where(i % 2, -1.0, 1.0)
        elif j % 2:
            found = np.sin(np.pi * (i + 0.5) * (j + 1) / n)
        else:
            found = np.cos(np.pi * (i + 0.5) * j / n)
        unit: np.ndarray[Any, Any] = found / np.linalg.norm(found)
        # Symmetry makes these 0 without rounding.
        unit[np.abs(unit) < np.finfo(float).eps] = 0
        return unit
