"""Storage for checkpoints: local folders and object stores.

Both hold named files, and replace a single file atomically. A checkpoint of several
files is atomic because its last file, `tree.json`, makes it valid.
"""

from __future__ import annotations

import abc
import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fxflow.devices import files
from fxflow.errors import CheckpointError

T = TypeVar("T")
Where = str | os.PathLike[str] | Mapping[str, Any]

_LOCK = ".writer"


class Storage(abc.ABC):
    """A folder of named files, local or in an object store."""

    @abc.abstractmethod
    def read(self, name: str) -> bytes | None:
        """Returns a file's bytes; None if it does not exist."""

    @abc.abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Writes a file atomically."""

    @abc.abstractmethod
    def names(self) -> list[str]:
        """Returns the names of the files and folders in this folder, sorted."""

    def has(self, name: str) -> bool:
        """Returns whether a file exists."""
        return self.read(name) is not None

    @abc.abstractmethod
    def remove(self, name: str) -> None:
        """Removes a file or folder, if it exists."""

    @abc.abstractmethod
    def inside(self, name: str) -> Storage:
        """Returns a subfolder."""

    @property
    @abc.abstractmethod
    def kvstore(self) -> dict[str, Any]:
        """TensorStore's specification of this folder."""

    def lock(self, run: str = "") -> Callable[[], None]:
        """Locks this folder for one writer; returns the function that unlocks it.

        Args:
          run: identifies an elastic run, of which one process writes at a time. If a
            process that was stopped and replaced still has the lock, it does not block
            the other processes of its run.

        Raises:
          CheckpointError: another writer has locked it.
        """
        return lambda: None


class Local(Storage):
    """A folder on this machine or a mounted file system.

    Attributes:
      path: the folder's path.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path).absolute()

    def __str__(self) -> str:
        return str(self.path)

    def read(self, name: str) -> bytes | None:
        """See `Storage.read`."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """See `Storage.write`."""
        self.path.mkdir(parents=True, exist_ok=True)
        files.write(self.path / name, data, durable=True)

    def has(self, name: str) -> bool:
        """See `Storage.has`."""
        return (self.path / name).is_file()

    def names(self) -> list[str]:
        """See `Storage.names`."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self.path))
        return []

    def remove(self, name: str) -> None:
        """See `Storage.remove`."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def inside(self, name: str) -> Local:
        """See `Storage.inside`."""
        return Local(self.path / name)

    @property
    def kvstore(self) -> dict[str, Any]:
        """See `Storage.kvstore`."""
        return {"driver": "file", "path": f"{self.path}/"}

    def lock(self, run: str = "") -> Callable[[], None]:
        """See `Storage.lock`."""
        own = (
            f"run {run}" if run else f"process {os.getpid()} of {socket.gethostname()}"
        )
        self.path.mkdir(parents=True, exist_ok=True)
        # The system releases the lock when the process ends, however that happens.
        descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            files.lock(descriptor)
        except BlockingIOError:
            other = os.read(descriptor, 200).decode(errors="replace").strip()
            os.close(descriptor)
            if run and other == own:
                return lambda: None
            raise CheckpointError(
                f"{self}: another writer saves checkpoints here ({other}); give each "
                f"run its own folder"
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, own.encode())
        return lambda: os.close(descriptor)


class ObjectStore(Storage):
    """A prefix in an object store, accessed by TensorStore.

    Args:
      spec: TensorStore's specification of a key-value store, such as `{"driver": "s3",
        "bucket": …, "path": …}`.
      timeout: seconds that an operation may take.
    """

    def __init__(self, spec: Mapping[str, Any], timeout: float) -> None:
        path = str(spec.get("path", ""))
        path = f"{path}/" if path and not path.endswith("/") else path
        self._spec, self._timeout = {**spec, "path": path}, timeout
        self._opened: Any = None

    def __str__(self) -> str:
        spec = self._spec
        return f"{spec.get('driver')}://{spec.get('bucket', '')}/{spec['path']}"

    @property
    def _store(self) -> Any:
        if self._opened is None:
            opened = tensorstore().KvStore.open(self._spec)
            self._opened = self._done(opened, "opening")
        return self._opened

    def _done(self, future: Any, what: str) -> Any:
        return waited(future, self._timeout, f"{self}: {what}")

    def read(self, name: str) -> bytes | None:
        """See `Storage.read`."""
        found = self._done(self._store.read(name), f"reading {name}")
        return bytes(found.value) if found.state == "value" else None

    def write(self, name: str, data: bytes) -> None:
        """See `Storage.write`."""
        self._done(self._store.write(name, data), f"writing {name}")

    def names(self) -> list[str]:
        """See `Storage.names`."""
        keys = self._done(self._store.list(), "listing")
        return sorted({key.decode().split("/")[0] for key in keys})

    def remove(self, name: str) -> None:
        """See `Storage.remove`."""
        if name in self.names() and not self.has(name):
            inside = tensorstore().KvStore.KeyRange(f"{name}/", f"{name}0")  # "/" + 1
            self._done(self._store.delete_range(inside), f"removing {name}")
        else:
            self._done(self._store.write(name, None), f"removing {name}")

    def has(self, name: str) -> bool:
        """See `Storage.has`."""
        keys = self._done(self._store.list(), "listing")
        return name.encode() in keys

    def inside(self, name: str) -> ObjectStore:
        """See `Storage.inside`."""
        spec = {**self._spec, "path": f"{self._spec['path']}{name}/"}
        return ObjectStore(spec, self._timeout)

    @property
    def kvstore(self) -> dict[str, Any]:
        """See `Storage.kvstore`."""
        return dict(self._spec)


def tensorstore() -> Any:
    """Returns the module `tensorstore`.

    Raises:
      ImportError: it is missing.
    """
    try:
        import tensorstore
    except ImportError:
        raise ImportError(
            "checkpoints of several processes, and in object stores, need TensorStore: "
            "pip install 'fxflow[checkpoint]'"
        ) from None
    return tensorstore


def waited(
    future: Any,
    timeout: float,
    what: str,
    failure: type[CheckpointError] = CheckpointError,
) -> Any:
    """Waits for the result of a future of TensorStore.

    Args:
      future: the future.
      timeout: seconds.
      what: the operation, for messages.
      failure: the class of the error to raise if it fails.

    Raises:
      TimeoutError: it took more than `timeout` seconds.
    """
    try:
        return future.result(timeout=timeout)
    except TimeoutError:
        raise TimeoutError(f"{what} took more than {timeout:g} s") from None
    except (ValueError, OSError) as error:
        raise failure(f"{what}: {error}") from None


def storage_of(where: Where, timeout: float) -> Storage:
    """Returns the storage at a path, a URL or a specification of TensorStore."""
    if isinstance(where, Mapping):
        return ObjectStore(where, timeout)
    path = os.fspath(where)
    if "://" not in path:
        return Local(path)
    if path.startswith("file://"):
        return Local(path.removeprefix("file://"))
    spec = tensorstore().KvStore.Spec(path)
    return ObjectStore(spec.to_json(), timeout)
