"""Snapshots in a folder: servers write the rows, a worker the rest and the manifest.

A folder has `snapshot-000001.json`, the manifest of the first snapshot, and so on, each
with a folder of files. A manifest names all files that it needs, of earlier snapshots
too: a snapshot has only the rows that changed since the previous one, unless these
changes exceed the rows themselves. A manifest is written last, under a temporary name,
so a snapshot without one is not complete and does not count.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import shutil
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.devices import files
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.archive import EntryLog, read_log
from fxflow.distributed.parameter_server.worker import snapshots
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.distributed.parameter_server.worker.tickets import Deadline, HostArray
from fxflow.errors import ArgumentError, DistributedError

#: The version of manifests; see `load_snapshot`.
FORMAT = 1
#: Seconds between two questions whether files are complete.
_POLL = 0.1
#: Bytes that are read at once to check a file.
_CHUNK = 4 << 20
_MANIFEST = re.compile(r"snapshot-(\d{6,})\.json")

Folder = str | os.PathLike[str]


def save(
    client: WorkerClient,
    folder: Folder,
    tensors_of_parts: Any,
    *,
    incremental: bool,
    keep: int | None,
) -> int:
    """Saves a snapshot of all shards; see `ParameterServer.save`.

    Args:
      client: this process's client.
      folder: the folder.
      tensors_of_parts: returns the tensors by name, from the parts of all shards.
      incremental: whether servers may write only the rows that changed.
      keep: number of snapshots to keep; None: all.

    Raises:
      ArgumentError: `keep` is not positive.
      DistributedError: a server does not answer in time, or cannot write its rows.
      OSError: the folder cannot be written to.
    """
    if keep is not None and keep < 1:
        raise ArgumentError(f"save: keep must be at least 1, got {keep}")
    path = Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    numbers = saved_snapshots(path)
    previous = _manifest(path, numbers[-1]) if numbers else None
    number = numbers[-1] + 1 if numbers else 1
    name = f"{number:06}-{secrets.token_hex(4)}"
    count = len(client.view.holders)
    since = ""
    if previous is not None and incremental and len(previous["shards"]) == count:
        since = "" if _wants_all(previous) else str(previous["name"])

    def cut() -> tuple[int, dict[int, Message]]:
        return snapshots.cut_for(client, name, since)

    which, answers = snapshots.with_retries(client, cut)
    try:
        shards = _rows_written(client, which, path / name, sorted(answers))
        parts = [snapshots.part_of(answers[s], {}) for s in sorted(answers)]
        _write_rest(path / name, tensors_of_parts(parts), parts)
        chains = [
            _chained(previous["shards"][s] if since and previous else {}, tables, name)
            for s, tables in enumerate(shards)
        ]
        manifest = {"format": FORMAT, "name": name, "number": number, "shards": chains}
        _write_manifest(path, number, manifest)
    except BaseException:
        shutil.rmtree(path / name, ignore_errors=True)
        raise
    if keep is not None:
        _remove_old(path, keep)
    return number


def _rows_written(
    client: WorkerClient, which: int, folder: Path, shards: Sequence[int]
) -> list[dict[str, Any]]:
    """Waits until the servers have written the rows; returns the files, by shard.

    Raises:
      DistributedError: a server cannot write them, or makes no progress.
    """
    found: dict[int, dict[str, Any]] = {}
    written: dict[int, int] = {}
    deadline = Deadline(client.seconds, "rows of a snapshot")
    while len(found) < len(shards):
        left = [s for s in shards if s not in found]
        asked = {s: messages.SaveRows(s, which, str(folder)) for s in left}
        for shard, answer in client.ask(asked).items():
            fields: messages.RowsSaved = answer.fields
            if fields.tables is not None:
                found[shard] = fields.tables
            if fields.written != written.get(shard):
                written[shard] = fields.written
                deadline.renew()
        if len(found) < len(shards):
            late = sorted({client.view.primary(s) for s in shards if s not in found})
            deadline.check(f"servers {late}")
            time.sleep(_POLL)
    return [found[shard] for shard in shards]


def _chained(
    before: Mapping[str, Any], tables: Mapping[str, Any], name: str
) -> dict[str, list[Any]]:
    """Returns the files of each table, oldest first, after a shard has saved more."""
    found = {}
    for table, more in tables.items():
        earlier = [] if more["whole"] else list(before.get(table, []))
        found[table] = [*earlier, {**more, "folder": name}]
    return found


def _wants_all(manifest: Mapping[str, Any]) -> bool:
    """Returns whether changes already have more rows than the tables had."""
    first = more = 0
    for tables in manifest["shards"]:
        for generations in tables.values():
            sizes = [int(generation["rows"]) for generation in generations]
            first, more = first + sizes[0], more + sum(sizes[1:])
    return more > first


def _write_rest(
    folder: Path, tensors: Mapping[str, Any], parts: Sequence[snapshots.SnapshotPart]
) -> None:
    """Writes parameters and their optimizer's state to one file."""
    arrays = {f"param/{name}": np.asarray(x) for name, x in tensors.items()}
    for number, part in enumerate(parts):
        for i, leaf in enumerate(part.rest["optimizer"]):
            arrays[f"server/{number}/{i}"] = leaf
    text = json.dumps([part.rest["keys"] for part in parts])
    arrays["keys"] = np.frombuffer(text.encode(), np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "dense.new"
    temporary.unlink(missing_ok=True)
    file = EntryLog(temporary)
    try:
        file.append(Message.of(messages.State(), arrays=arrays))
        file.sync()
    finally:
        file.close()
    temporary.replace(folder / "dense")


def _write_manifest(folder: Path, number: int, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, indent=1).encode()
    files.write(folder / f"snapshot-{number:06}.json", text, durable=True)


def _remove_old(folder: Path, keep: int) -> None:
    """Removes old manifests, and the folders that no manifest names any more."""
    numbers = saved_snapshots(folder)
    needed = set()
    for number in numbers[-keep:]:
        manifest = _manifest(folder, number)
        needed.add(manifest["name"])
        for tables in manifest["shards"]:
            for generation in itertools.chain.from_iterable(tables.values()):
                needed.add(generation["folder"])
    for number in numbers[:-keep]:
        (folder / f"snapshot-{number:06}.json").unlink()
    for path in folder.glob("??????-????????"):
        if path.is_dir() and path.name not in needed:
            shutil.rmtree(path, ignore_errors=True)


# -- reading ---------------------------------------------------------------------------


def saved_snapshots(folder: Folder) -> list[int]:
    """Finds the complete snapshots in a folder.

    Args:
      folder: the argument of `ParameterServer.save`.

    Returns:
      Their numbers, the oldest first; of a folder that is not there, none.

    Example:
      >>> saved_snapshots("/nowhere")
      []
    """
    found = map(_MANIFEST.fullmatch, (p.name for p in Path(folder).glob("snapshot-*")))
    return sorted(int(match[1]) for match in found if match)


def load_snapshot(folder: Folder, number: int | None = None) -> dict[str, Any]:
    """Returns a snapshot that `ParameterServer.save` has written.

    Rows of tables are memory-mapped, so tables may exceed the memory. All files are
    read once, in parts, to compare their checksums.

    Args:
      folder: the argument of `save`.
      number: what `save` returned; None: the last one.

    Returns:
      A snapshot for `init`, which a run with any number of servers may begin with.

    Raises:
      ArgumentError: there is no such snapshot.
      DistributedError: another version of fxflow wrote it, or a file is missing or
        damaged.
    """
    path, numbers = Path(folder), saved_snapshots(folder)
    if not numbers or number not in (None, *numbers):
        which = "snapshot" if number is None else f"snapshot {number}"
        raise ArgumentError(f"load_snapshot: {path} has no {which}: it has {numbers}")
    manifest = _manifest(path, numbers[-1] if number is None else number)
    arrays = _read_rest(path / manifest["name"])
    keys = json.loads(arrays.pop("keys").tobytes())
    servers = []
    for shard, (tables, kinds) in enumerate(zip(manifest["shards"], keys, strict=True)):
        optimizer = [arrays[f"server/{shard}/{i}"] for i in range(len(kinds))]
        rows = {
            name: [
                block
                for generation in generations
                if (block := _block(path / generation["folder"], shard, generation))
            ]
            for name, generations in tables.items()
        }
        servers.append({"keys": kinds, "optimizer": optimizer, "rows": rows})
    prefix = "param/"
    params = {n[len(prefix) :]: x for n, x in arrays.items() if n.startswith(prefix)}
    return {"params": params, "servers": servers, "name": manifest["name"]}


def _manifest(folder: Path, number: int) -> dict[str, Any]:
    path = folder / f"snapshot-{number:06}.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DistributedError(f"the snapshot {path} cannot be read: {error}") from None
    if version != FORMAT:
        raise DistributedError(
            f"the snapshot {path} has format {version}, this fxflow reads format "
            f"{FORMAT}: load it with the version that wrote it"
        )
    return manifest


def _read_rest(folder: Path) -> dict[str, HostArray]:
    message = next(read_log(folder / "dense", repair=False), None)
    if message is None:
        raise DistributedError(
            f"{folder / 'dense'} is missing or damaged: load another snapshot"
        )
    return dict(message.arrays)


def _block(
    folder: Path, shard: int, generation: Mapping[str, Any]
) -> list[HostArray] | None:
    """Returns the memory-mapped fields of some rows; None if there are none.

    Raises:
      DistributedError: a file is missing, or differs from what was written.
    """
    count = int(generation["rows"])
    block: list[HostArray] = []
    for field in generation["fields"] if count else ():
        path = folder / f"shard-{shard:04}" / field["file"]
        dtype, shape = dtypes.dtype(field["dtype"]), (count, *field["shape"])
        checksum = 0
        try:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    checksum = zlib.crc32(chunk, checksum)
                size = file.tell()
        except OSError as error:
            raise DistributedError(
                f"{path}, a file of the snapshot, cannot be read: {error.strerror}"
            ) from None
        expected = int(np.prod(shape)) * dtype.itemsize
        if size != expected or checksum != field["crc32"]:
            raise DistributedError(
                f"{path}, a file of the snapshot, is damaged: it has {size} bytes, "
                f"{expected} were written, or other ones: load another snapshot"
            )
        block.append(np.memmap(path, dtype, "r", shape=shape))
    return block or None
