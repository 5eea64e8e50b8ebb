from pathlib import Path

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.consistency import asynchronous
from fxflow.distributed.parameter_server.model import make_model
from fxflow.distributed.parameter_server.server.ledger import Position
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.program_text import Runner
from fxflow.errors import DistributedError

W = np.zeros(2, np.float32)


def filled(folder: Path | None, server: int = 0) -> Store:
    store = Store(server, folder)
    store.open(3)
    model = make_model(["w"], [W], optim.sgd(-1.0), asynchronous(rate="fixed"))
    fields, arrays = model.to_message()
    given = {**arrays, "param/w": W}
    store.append(3, Message.of(messages.Offer(3, fields, []), 1, 0, 5, given))
    store.append(3, Message.of(messages.Join(3, ""), 1, 0, 5))
    push(store, 1)
    return store


def push(store: Store, number: int) -> None:
    fields = messages.Gradient(3, number - 1, number - 1)
    arrays = {"0": np.ones(2, np.float32)}
    assert store.append(3, Message.of(fields, 1, number, 6, arrays)) == ""


def value(store: Store) -> float:
    return float(np.asarray(store.shards[3].params[0])[0])


def test_a_shard_is_restored_from_its_log(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.close()
    again = Store(0, tmp_path)
    shard = again.open(3)
    assert (value(again), shard.position) == (1.0, Position(6, 3))
    assert again.open(3) is shard
    again.close()


def test_load_replaces_a_shard_and_its_log(tmp_path: Path) -> None:
    source = filled(None)
    push(source, 2)
    other = filled(tmp_path, server=1)
    other.load(3, source.state(3))
    assert (value(other), other.shards[3].position) == (2.0, Position(6, 4))
    push(other, 3)
    other.close()
    again = Store(1, tmp_path)
    again.open(3)
    assert (value(again), again.shards[3].position) == (3.0, Position(6, 5))
    names = sorted(path.name for path in tmp_path.glob("shard*"))
    assert names == ["shard-0003.000001.log", "shard-0003.000001.state"]
    again.close()
    source.close()


def test_a_malformed_state_is_refused() -> None:
    store = filled(None)
    for arrays in ({}, {"fields": np.frombuffer(b"{}", np.uint8)}):
        with pytest.raises(ValueError, match="state of a shard"):
            store.load(3, Message.of(messages.State(3), arrays=arrays))
    assert value(store) == 1.0
    store.close()


def test_an_entry_that_cannot_be_logged_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(DistributedError, match="No space left on device"):
            push(store, 2)
    assert (value(store), store.shards[3].ledger.last(1)) == (1.0, 1)
    push(store, 2)  # there is space again
    store.close()
    again = Store(0, tmp_path)
    again.open(3)
    assert value(again) == 2.0
    again.close()


def test_a_log_that_cannot_be_replayed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path).close()
    monkeypatch.setattr(Runner, "__call__", greedy)
    again = Store(0, tmp_path)
    with pytest.raises(
        DistributedError, match=r"shard 3 .* from its log in .*: 'w': MemoryError: 1 TB"
    ):
        again.open(3)
    again.close()


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    first, second = filled(tmp_path), Store(1, tmp_path)
    with pytest.raises(
        DistributedError, match="is the folder of another running server"
    ):
        second.open(3)
    second.close()
    first.close()
    second.open(3)
    assert value(second) == 1.0
    second.close()


def greedy(*_: object) -> None:
    raise MemoryError("1 TB")


def test_a_dropped_shard_leaves_no_files(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert not store.is_empty
    store.drop(3)
    assert store.is_empty and store.shards == {}
    store.drop(3)
    assert store.open(3).position == Position(0, 0)
    store.close()


def test_the_last_view_is_stored(tmp_path: Path) -> None:
    view = first_view(["a:1", "b:1"], 2)._replace(epoch=4, servers=(1, 2), run=9)
    store = Store(0, tmp_path)
    assert store.kept() is None
    store.keep(view._replace(epoch=3))
    store.keep(view)
    store.close()
    again = Store(0, tmp_path)
    assert again.kept() == view
    (tmp_path / "view.json").write_text('{"epoch": 4')
    with pytest.raises(DistributedError, match=r"view\.json cannot be read"):
        again.kept()
    again.close()
    nowhere = Store(0, None)
    nowhere.keep(view)
    assert nowhere.kept() is None and nowhere.is_empty
