"""A model with tables as `fxflow serve` runs it: from raw columns to predictions.

A request has rows of raw columns, as JSON objects. The features that training used make
their ids, a source of rows reads the tables, and the dense part runs, compiled for a
few batch sizes.
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fxflow.core.arrays import as_array, dtypes
from fxflow.errors import FxflowError, RetraceWarning, ServeError
from fxflow.lax.pytree_transfer import device_put
from fxflow.serve.batching import padded, sizes_up_to, with_rows
from fxflow.serve.containers.models import Model
from fxflow.serve.signatures import ModelSignature
from fxflow.serve.tables.artifacts import (
    RecommenderFiles,
    blank_columns,
    joined_shape,
    raw_columns,
)
from fxflow.serve.tables.rows import MappedRows, RowSource
from fxflow.serve.tables.servers import ServerRows
from fxflow.transforms.jit import jit

HostArray = np.ndarray[Any, Any]
#: The name of the input: a row of raw columns.
ROW = "row"


class Recommender(Model):
    """A model with tables. Made by `load_recommender`.

    Args:
      files: its folder.
      source: returns the rows of its tables.

    Attributes:
      files: its folder.
      age: seconds since the oldest row or parameter of the last batch was read from
        the servers, or since the folder was written.
    """

    age: float | None

    def __init__(self, files: RecommenderFiles, source: RowSource) -> None:
        self.files = files
        self._source = source
        self._columns = raw_columns(files.features)
        blank = json.dumps(dict.fromkeys(self._columns)).encode()
        super().__init__(
            self._answer,
            inputs={ROW: "bytes[batch]"},
            jit=False,
            example={ROW: blank},
        )
        self._dense = jit(files.dense.exported.call)
        self._dense_params = device_put(files.dense.params)
        self._compiled: tuple[int, ...] = ()
        self.age = None

    def prepare(
        self, max_batch: int, run: Callable[[Any], Any] = asyncio.run
    ) -> ModelSignature:
        """Compiles the dense part for each batch size, and returns the signature.

        Args:
          max_batch: the most rows of a batch.
          run: runs a coroutine.

        Raises:
          ServeError: an output has an unsupported dtype or shape.
        """
        self._compiled = sizes_up_to(max_batch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetraceWarning)
            for rows in self._compiled:
                self._predicted(blank_columns(self.files.features, rows), rows)
        signature = super().prepare(max_batch, run)
        return replace(signature, objects=True)

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, HostArray]:
        """Returns the predictions for rows of raw columns.

        Args:
          rows: each has the value of every column; None: it is missing.

        Returns:
          The outputs by name.

        Raises:
          ServeError: a row is not one of these columns, or rows are not available.
        """
        return self._predicted(self._transposed(rows), len(rows))

    def close(self) -> None:
        """Frees the rows, or disconnects from the servers."""
        self._source.close()

    def _answer(self, texts: HostArray) -> dict[str, HostArray]:
        try:
            rows = [json.loads(text) for text in texts]
        except (ValueError, RecursionError) as error:
            raise ServeError(f"a row must be a JSON object: {error}", 400) from None
        return self.predict(rows)

    def _transposed(self, rows: Sequence[Any]) -> dict[str, list[Any]]:
        """Returns columns, checked."""
        expected = set(self._columns)
        for row in rows:
            if not isinstance(row, Mapping):
                raise ServeError(
                    f"a row must be an object with {_listed(self._columns)}, got "
                    f"{type(row).__name__}",
                    400,
                )
            if row.keys() != expected:
                missing, unknown = expected - row.keys(), row.keys() - expected
                what = f"has no column {min(missing)!r}" if missing else ""
                if unknown:
                    what += " and " if what else ""
                    what += f"has the unknown column {min(unknown)!r}"
                raise ServeError(
                    f"a row {what}; the columns are {_listed(self._columns)} (null: "
                    "missing)",
                    400,
                )
        return {name: [row[name] for row in rows] for name in self._columns}

    def _predicted(self, columns: Mapping[str, Any], rows: int) -> dict[str, HostArray]:
        try:
            batch = self.files.features(columns)
        except FxflowError as error:
            raise ServeError(str(error), 400) from None
        size = padded(rows, self._compiled)
        if size != rows:
            batch = {name: with_rows(a, size) for name, a in batch.items()}
        ids = {
            name: _joined(batch, table.columns, size)
            for name, table in self.files.tables.items()
        }
        read = self._source.read(ids)
        params = self._dense_params if read.params is None else read.params
        outputs = self._dense(params, _wide(read.rows), batch)
        self.age = read.age
        return {k: v[:rows] for k, v in self._arrays(outputs).items()}


def _joined(batch: Mapping[str, HostArray], columns: Sequence[str], size: int) -> Any:
    """Returns the ids of a table."""
    if len(columns) == 1:
        return batch[columns[0]]
    parts = [batch[name].reshape(size, -1) for name in columns]
    joined = np.concatenate(parts, axis=1)
    assert joined.shape == joined_shape(batch, columns, size)
    return joined


def _wide(rows: Mapping[str, HostArray]) -> dict[str, Any]:
    return {
        name: as_array(x, x.dtype) if dtypes.is_wide(x.dtype) else x
        for name, x in rows.items()
    }


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def load_recommender(
    path: str | os.PathLike[str],
    *,
    servers: Any = None,
    staleness: float = 1.0,
    timeout: float = 0.25,
    unavailable: Literal["cached", "error"] = "cached",
    cached_rows: int = 1 << 20,
    copies: bool = False,
    start: float = 10.0,
) -> Recommender:
    """Returns the model in a folder that `save_recommender` wrote.

    Rows and dense parameters are those of the folder or, with `servers`, those that a
    run is training: answers follow the training within `staleness` seconds.

    Args:
      path: the folder.
      servers: addresses of the parameter servers, ``"host:port,host:port"`` or a list,
        or as the argument `cluster` of `parameter_server`; None: the folder's rows.
      staleness: seconds for which a row or parameter that was read may be used.
      timeout: seconds after which the servers count as unavailable.
      unavailable: what to do then: ``cached`` answers with what was read before, the
        folder's rows and initial rows, whose age the answer shows; ``error`` refuses
        requests until the servers answer again.
      cached_rows: most rows of each table in memory.
      copies: whether to read from all servers that hold a shard, as `ParameterReader`.
      start: seconds to wait for the servers when the model is loaded. With ``cached``,
        a folder with rows is served if they do not answer.

    Returns:
      A model whose input is a row of raw columns.

    Raises:
      ServeError: it is not such a folder, it is damaged, or of another version; the
        servers do not answer, or have other tables or parameters.
      ArgumentError: an option is not one of these.

    Example:
      >>> load_recommender("no-such-folder")
      Traceback (most recent call last):
      fxflow.errors.ServeError: no-such-folder is not a folder that save_recommender ...
    """
    files = RecommenderFiles.read(path)
    if servers is None:
        return Recommender(files, MappedRows(files))
    rows = ServerRows(
        files,
        servers,
        staleness=staleness,
        timeout=timeout,
        unavailable=unavailable,
        cached_rows=cached_rows,
        copies=copies,
        start=start,
    )
    return Recommender(files, rows)
