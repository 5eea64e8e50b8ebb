"""Writes the folder of a model with tables.

The folder is written under a temporary name and renamed. Rows are copied in blocks, so
a table may be larger than memory.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow._version import __version__
from fxflow.core.arrays import ShapeDtypeStruct, dtypes
from fxflow.core.boundary import require_callable
from fxflow.devices import files
from fxflow.distributed.parameter_server.tables.spec import TableSpec, row_functions
from fxflow.errors import ArgumentError, ServeError, ShapeError
from fxflow.export.exporting import export
from fxflow.export.files import save
from fxflow.export.symbolic import symbolic_shape
from fxflow.serve.tables.artifacts import (
    DENSE,
    FEATURES,
    FORMAT,
    MANIFEST,
    VERSION,
    StoredTable,
    blank_columns,
    joined_shape,
    read_manifest,
)
from fxflow.train.data.features import FittedFeatures
from fxflow.train.tables import TrainerState
from fxflow.transforms.jit import jit

HostArray = np.ndarray[Any, Any]
#: Rows that are copied together.
_BLOCK = 1 << 16


def save_recommender(
    path: str | os.PathLike[str],
    predict: Any,
    state: TrainerState | Mapping[str, Any],
    tables: Sequence[TableSpec],
    features: FittedFeatures,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    step: int | None = None,
) -> None:
    """Writes a model with tables to a folder, which `fxflow serve` serves.

    The folder is complete or absent, even if the process is killed, and one that this
    function wrote before is replaced. A second process that writes the same folder
    meanwhile gets an error; so does one with an earlier `step` than the folder has.

    Args:
      path: the folder.
      predict: `predict(params, rows, batch)`, which returns an array or a dict of
        arrays, one row for each example. `rows` has, by table, what the loss function
        gets; `batch` has the arrays of all features, by name.
      state: the `TrainerState` of a `train.TableTrainer`, or the snapshot of a
        `ParameterServer`, whose rows may be memory-mapped. A `TrainerState` without
        tables is served with the rows of servers only.
      tables: specifications of the tables.
      features: what makes ids and numbers of raw columns.
      columns: by table, the name of the feature with its ids, or names of several ones,
        whose ids are joined along axis 1; by default the feature named like the table.
      step: number of the training step, if there is one.

    Raises:
      ArgumentError: a table has no feature, or a feature has more ids than its table
        has rows; the state has other tables; or the folder exists and is not one that
        this function wrote, is being written, or has a later step.
      ShapeError: rows have another shape than their table's.
      OSError: a file cannot be written.

    Example:
      >>> import tempfile
      >>> from fxflow import serve
      >>> from fxflow.distributed.parameter_server import TableSpec
      >>> features = train.data.Features({"ad": train.data.Hash("ad", 50)}).fit([])
      >>> ads = TableSpec("ad", 4, optim.adagrad(0.1), rows=50)
      >>> trainer = train.table_trainer(lambda w, r, y: 0.0, optim.sgd(0.1), [ads])
      >>> state = trainer.init(fnp.ones(4))
      >>> def predict(w, rows, batch):
      ...     return {"click": nn.sigmoid(rows["ad"] @ w)}
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     save_recommender(f"{folder}/ads", predict, state, [ads], features)
      ...     model = serve.load_recommender(f"{folder}/ads")
      ...     model.predict([{"ad": "shoes"}, {"ad": None}])["click"].shape
      (2,)
    """
    require_callable(predict, "save_recommender")
    path = Path(os.path.realpath(path))
    specs = {spec.name: spec for spec in tables}
    params, rows = _parts_of(state)
    if rows and set(rows) != set(specs):
        raise ArgumentError(
            f"save_recommender: the state has the tables {sorted(rows)}, and tables "
            f"has {sorted(specs)}"
        )
    named = _columns(specs, features, columns or {})
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        files.lock(lock)
    except OSError:
        os.close(lock)
        raise ArgumentError(
            f"save_recommender: another process is writing {path}"
        ) from None
    try:
        _check_replaced(path, step)
        with files.replacing(path) as folder:
            stored = {}
            for number, (name, spec) in enumerate(specs.items()):
                stored[name] = _write_table(
                    folder, number, spec, rows.get(name), named[name]
                )._asdict()
            (folder / FEATURES).write_text(features.to_json(), "utf-8")
            dense = _dense(predict, params, specs, features, named)
            save(folder / DENSE, dense, params=params)
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "fxflow": __version__,
                "id": secrets.token_hex(16),
                "step": step,
                "created": time.time(),
                "tables": stored,
            }
            text = json.dumps(manifest, indent=1).encode() + b"\n"
            files.write(folder / MANIFEST, text, durable=True)
    finally:
        os.close(lock)


def _check_replaced(path: Path, step: int | None) -> None:
    """Refuses to replace something else, or a later step."""
    if not os.path.lexists(path):
        return
    try:
        before = read_manifest(path)
    except ServeError as error:
        raise ArgumentError(f"save_recommender: {error}; it is kept") from None
    known = before.get("step")
    if step is not None and known is not None and known > step:
        raise ArgumentError(
            f"save_recommender: {path} has step {known}, and this is step {step}: "
            "another process has trained on; it is kept"
        )


def _parts_of(state: Any) -> tuple[Any, dict[str, list[Sequence[HostArray]]]]:
    """Returns the dense parameters, and blocks of (ids, rows) by table.

    Ids are None if row i is that of id i.
    """
    if isinstance(state, TrainerState):
        whole: dict[str, Any] = {
            name: [(None, table)] for name, (table, _) in state.tables.items()
        }
        return state.params, whole
    if isinstance(state, Mapping) and {"params", "servers"} <= set(state):
        found: dict[str, list[Sequence[HostArray]]] = {}
        for server in state["servers"]:
            for name, blocks in server["rows"].items():
                found.setdefault(name, []).extend((b[0], b[1]) for b in blocks)
        return state["params"], found
    raise ArgumentError(
        "save_recommender: state must be a TrainerState or what "
        f"ParameterServer.snapshot returned, got {type(state).__name__}"
    )


def _columns(
    specs: Mapping[str, TableSpec],
    features: FittedFeatures,
    given: Mapping[str, str | Sequence[str]],
) -> dict[str, tuple[str, ...]]:
    """Returns the features of each table, checked."""
    if unknown := sorted(set(given) - set(specs)):
        raise ArgumentError(
            f"save_recommender: columns has the tables {unknown}, tables has "
            f"{sorted(specs)}"
        )
    sizes, found = features.sizes, {}
    for name, spec in specs.items():
        names = given.get(name, name)
        found[name] = (names,) if isinstance(names, str) else tuple(names)
        for column in found[name]:
            if column not in sizes:
                raise ArgumentError(
                    f"save_recommender: {spec} has the ids of feature {column!r}, and "
                    f"the features with ids are {sorted(sizes)}: give columns="
                )
            if getattr(features.features[column], "capacity", None) is not None:
                raise ArgumentError(
                    f"save_recommender: feature {column!r} has a capacity for a batch, "
                    "and requests have batches of any size: use width= alone"
                )
            if spec.rows is not None and sizes[column] > spec.rows:
                raise ArgumentError(
                    f"save_recommender: feature {column!r} has ids below "
                    f"{sizes[column]}, {spec} has {spec.rows} rows"
                )
    return found


def _write_table(
    folder: Path,
    number: int,
    spec: TableSpec,
    blocks: list[Sequence[HostArray]] | None,
    columns: tuple[str, ...],
) -> StoredTable:
    table = StoredTable(spec.shape, spec.dtype.name, spec.rows, columns)
    if spec.optimizer is not None:
        init = f"table-{number}.init.fx"
        functions = row_functions(spec)
        (size,) = symbolic_shape("n")
        halves = ShapeDtypeStruct((size, 2), dtypes.uint32)
        save(folder / init, export(jit(lambda ids: functions.init(ids)[0]))(halves))
        table = table._replace(init=init)
    if blocks is None:
        return table
    for _, rows in blocks:
        if tuple(rows.shape[1:]) != spec.shape or rows.dtype != spec.dtype:
            raise ShapeError(
                f"save_recommender: {spec} has rows {spec.dtype}{list(spec.shape)}, "
                f"the state has {rows.dtype}{list(rows.shape[1:])}"
            )
    count = sum(len(rows) for _, rows in blocks)
    table = table._replace(rows=f"table-{number}.rows.npy", stored=count)
    order: npt.NDArray[np.intp] | None = None
    if any(ids is not None for ids, _ in blocks):
        ids = np.concatenate([np.asarray(b[0], np.int64) for b in blocks])
        order = np.argsort(ids, kind="stable")
        if count and (np.diff(ids[order]) == 0).any():
            raise ArgumentError(f"save_recommender: {spec} has a row twice")
        table = table._replace(ids=f"table-{number}.ids.npy")
        np.save(folder / table.ids, ids[order])
    target = np.lib.format.open_memmap(
        folder / table.rows, "w+", _plain(spec.dtype), (count, *spec.shape)
    )
    if count:
        at = np.arange(count)
        if order is not None:
            at[order] = np.arange(count)  # where each row of the blocks goes
        start = 0
        for part in _pieces(blocks):
            target[at[start : start + len(part)]] = part.view(target.dtype)
            start += len(part)
    target.flush()
    return table


def _pieces(blocks: list[Sequence[HostArray]]) -> Iterator[HostArray]:
    for _, rows in blocks:
        for start in range(0, len(rows), _BLOCK):
            yield np.ascontiguousarray(rows[start : start + _BLOCK])


def _plain(dtype: Any) -> np.dtype[Any]:
    """Returns a dtype that `.npy` files have: bits for bfloat16 and the like."""
    kind = np.dtype(dtype)
    return kind if kind.kind == "f" else np.dtype(f"u{kind.itemsize}")


def _dense(
    predict: Any,
    params: Any,
    specs: Mapping[str, TableSpec],
    features: FittedFeatures,
    columns: Mapping[str, tuple[str, ...]],
) -> Any:
    """Exports the dense part for batches of any size."""
    (size,) = symbolic_shape("n")
    batch = {
        name: ShapeDtypeStruct((size, *array.shape[1:]), array.dtype)
        for name, array in features(blank_columns(features)).items()
    }
    rows = {
        name: ShapeDtypeStruct(
            (*joined_shape(batch, columns[name], size), *spec.shape), spec.dtype
        )
        for name, spec in specs.items()
    }
    return export(jit(predict))(params, rows, batch)
