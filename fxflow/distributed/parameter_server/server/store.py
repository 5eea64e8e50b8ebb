"""The shards that a server holds, and their logs on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fxflow.distributed.parameter_server.messages import Limits, Message
from fxflow.distributed.parameter_server.server import log as logs
from fxflow.distributed.parameter_server.server.shard import Shard


class Store:
    """Shards by number.

    Args:
      server: number of the server, for names of files of tables.
      folder: for the logs; None keeps none.
      limits: of a record.

    Attributes:
      shards: those that lie here.
    """

    def __init__(self, server: int, folder: Path | None, limits: Limits) -> None:
        self._server, self._folder, self._limits = server, folder, limits
        self.shards: dict[int, Shard] = {}
        self._logs: dict[int, logs.Log] = {}
        self._turns: dict[int, int] = {}

    def open(self, number: int) -> Shard:
        """Returns a shard as its log says; an empty one if there is none."""
        shard = self.shards.get(number)
        if shard is not None:
            return shard
        shard = Shard(self._place(number))
        path = self._path(number)
        if path is not None:
            for entry in logs.read(path, limits=self._limits):
                if entry.kind == "state":
                    before, shard = shard, self._loaded(number, entry)
                    before.close()
                else:
                    shard.apply(entry)
            self._logs[number] = logs.Log(path)
        self.shards[number] = shard
        return shard

    def enter(self, number: int, entry: Message) -> str:
        """Writes down and applies an entry that is due.

        Returns:
          Why a push was not used; empty if it was, or will be.
        """
        log = self._logs.get(number)
        if log is not None:
            log.append(entry, limits=self._limits)
        return self.shards[number].apply(entry)

    def state(self, number: int) -> Message:
        """Returns all of a shard as a message, for `load` elsewhere."""
        fields, arrays = self.shards[number].state()
        # As an array: it may be longer than the text of a message.
        said = np.frombuffer(json.dumps(fields).encode(), np.uint8)
        return Message(
            "state", fields={"shard": number}, arrays={**arrays, "fields": said}
        )

    def load(self, number: int, message: Message) -> None:
        """Puts the state of another copy in the place of a shard, and of its log.

        Raises:
          ValueError: it is no state.
        """
        loaded = self._loaded(number, message)
        before, self.shards[number] = self.shards.get(number), loaded
        if before is not None:
            before.close()
        path = self._path(number)
        if path is None:
            return
        log = self._logs.pop(number, None)
        if log is not None:
            log.close()
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        whole = logs.Log(new, sync=True)
        whole.append(message, limits=self._limits)
        whole.close()
        new.replace(path)
        self._logs[number] = logs.Log(path)

    def close(self) -> None:
        """Closes what is open."""
        for log in self._logs.values():
            log.close()
        for shard in self.shards.values():
            shard.close()

    def _loaded(self, number: int, message: Message) -> Shard:
        arrays = dict(message.arrays)
        said = arrays.pop("fields", None)
        if said is None:
            raise ValueError("not the state of a shard")
        fields = json.loads(said.tobytes())
        # The shard that it replaces has its tables still, elsewhere.
        self._turns[number] = 1 - self._turns.get(number, 0)
        return Shard.of_state(fields, arrays, self._place(number))

    def _place(self, number: int) -> str:
        turn = "ab"[self._turns.get(number, 0)]
        return f"server-{self._server:04}-shard-{number:04}-{turn}"

    def _path(self, number: int) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"shard-{number:04}.log"
