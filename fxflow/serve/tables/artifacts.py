"""The folder of a model with tables, as `save_recommender` writes it.

manifest.json       what the folder has: tables, columns, the model's version
features.json       how raw columns become ids and numbers (`train.data.Features`)
dense.fx            the dense part, `predict(params, rows, batch)`, with parameters
table-0.rows.npy    rows of a table, by id or in the order of:
table-0.ids.npy     their ids, increasing; none if row i is that of id i
table-0.init.fx     from ids to the initial rows, for ids without a row
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow._version import __version__
from fxflow.core.arrays import dtypes
from fxflow.errors import ServeError
from fxflow.export.files import Bundle, load
from fxflow.train.data.features import FittedFeatures, columns_of

HostArray = np.ndarray[Any, Any]
Ids = npt.NDArray[np.int64]

FORMAT, VERSION = "fxflow.recommender", 1
MANIFEST, FEATURES, DENSE = "manifest.json", "features.json", "dense.fx"


class StoredTable(NamedTuple):
    """A table in the manifest.

    Attributes:
      shape: shape of a row.
      dtype: name of the dtype of a row.
      limit: ids are below it; None: below 2**63.
      columns: the features whose ids it has, in order.
      rows, ids, init: names of the files; empty: there is none.
      stored: number of rows in the file.
    """

    shape: tuple[int, ...]
    dtype: str
    limit: int | None
    columns: tuple[str, ...]
    rows: str = ""
    ids: str = ""
    init: str = ""
    stored: int = 0


class RecommenderFiles(NamedTuple):
    """The contents of a folder that `save_recommender` wrote.

    Attributes:
      path: the folder.
      id: identifies what was saved.
      step: the number of the training step, if it was given.
      created: when it was saved, in seconds since 1970.
      tables: by name.
      features: makes arrays of raw columns.
      dense: the dense part.
    """

    path: Path
    id: str
    step: int | None
    created: float
    tables: Mapping[str, StoredTable]
    features: FittedFeatures
    dense: Bundle

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> RecommenderFiles:
        """Reads a folder, without its rows.

        Args:
          path: the folder.

        Raises:
          ServeError: it is not such a folder, it is damaged, or of another version.
        """
        path = Path(path)
        described = read_manifest(path)
        try:
            tables = {
                name: StoredTable(
                    **{
                        **fields,
                        "shape": tuple(fields["shape"]),
                        "columns": tuple(fields["columns"]),
                    }
                )
                for name, fields in described["tables"].items()
            }
            for table in tables.values():
                for name in (table.rows, table.ids, table.init):
                    if name != os.path.basename(name):
                        raise ValueError(f"the file {name!r}")
            features = FittedFeatures.from_json((path / FEATURES).read_text("utf-8"))
            return cls(
                *(path, str(described["id"]), described["step"]),
                *(float(described["created"]), tables, features),
                load(path / DENSE),
            )
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ServeError(f"{path} is damaged: {error!r}") from None

    def arrays(self, name: str) -> tuple[HostArray, Ids | None]:
        """Returns a table's rows and their ids, memory-mapped.

        Args:
          name: name of the table.

        Raises:
          ServeError: a file is missing, or has other rows than the manifest says.
        """
        table = self.tables[name]
        rows = self._mapped(table.rows)
        ids = self._mapped(table.ids) if table.ids else None
        dtype = dtypes.dtype(table.dtype)
        if rows.dtype != dtype and rows.dtype.itemsize == dtype.itemsize:
            rows = rows.view(dtype)
        expected = (table.stored, *table.shape), np.dtype(dtype)
        given = rows.shape, rows.dtype
        if given != expected or (ids is not None and ids.shape != (table.stored,)):
            raise ServeError(
                f"{self.path}: table {name!r} must have rows {expected[1]}"
                f"{list(expected[0])}, {table.rows} has {given[1]}{list(given[0])}: "
                "its files are of different snapshots"
            )
        return rows, ids

    def init(self, name: str) -> Bundle | None:
        """Returns the program of a table's initial rows, if there is one.

        Args:
          name: name of the table.
        """
        file = self.tables[name].init
        return load(self.path / file) if file else None

    def _mapped(self, file: str) -> HostArray:
        try:
            found: HostArray = np.load(self.path / file, mmap_mode="r")
            return found
        except (OSError, ValueError) as error:
            raise ServeError(f"{self.path / file} cannot be read: {error}") from None


def read_manifest(path: Path) -> dict[str, Any]:
    """Returns the manifest of a folder.

    Args:
      path: the folder.

    Raises:
      ServeError: there is none, or it is of another version.
    """
    try:
        described = json.loads((path / MANIFEST).read_bytes())
        if described["format"] != FORMAT:
            raise ValueError(f"format {described['format']!r}")
        version = described["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServeError(
            f"{path} is not a folder that save_recommender wrote: {error!r}"
        ) from None
    if version != VERSION:
        raise ServeError(
            f"{path} has format version {version}; this fxflow, {__version__}, reads "
            f"version {VERSION}: save the model again"
        )
    found: dict[str, Any] = described
    return found


def joined_shape(batch: Mapping[str, Any], columns: Sequence[str], size: Any) -> Any:
    """Returns the shape of a table's ids in a batch.

    Args:
      batch: the arrays of the features.
      columns: the features of the table.
      size: number of rows.
    """
    if len(columns) == 1:
        return size, *batch[columns[0]].shape[1:]
    widths = (batch[name].shape[1] if batch[name].ndim > 1 else 1 for name in columns)
    return size, sum(widths)


def blank_columns(features: FittedFeatures, rows: int = 1) -> dict[str, list[Any]]:
    """Returns columns without values.

    Args:
      features: the features.
      rows: number of rows.
    """
    return {name: [None] * rows for name in raw_columns(features)}


def raw_columns(features: FittedFeatures) -> tuple[str, ...]:
    """Returns the names of the raw columns that features need.

    Args:
      features: the features.
    """
    found: dict[str, None] = {}
    for feature in features.features.values():
        found |= dict.fromkeys(columns_of(feature))
    return tuple(found)
