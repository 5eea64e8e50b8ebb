import functools
import json
import re
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest

from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server.running import (
    Cluster,
    LocalServers,
    cluster_of,
    enlist,
)
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import ArgumentError, DistributedError
from tests.distributed.parameter_server.server import harness
from tests.distributed.parameter_server.server.harness import (
    PUSHES,
    Work,
    push,
    totals,
    worker,
)

PS = ["10.0.0.1:1", "10.0.0.2:1"]


def test_the_cluster_is_read_from_the_environment() -> None:
    assert cluster_of(None, {}) is None
    launched = {
        "FXFLOW_PS_SERVERS": ",".join(PS),
        "FXFLOW_PS_TASK": "worker:3",
    }
    found = cluster_of(None, launched)
    assert found == Cluster(tuple(PS), "worker", 3)
    launched |= {"FXFLOW_PS_WORKERS": "4", "FXFLOW_PS_CHIEF": "1"}
    launched |= {"FXFLOW_PS_SHARDS": "8"}
    found = cluster_of(None, launched)
    assert found == Cluster(tuple(PS), "worker", 3, workers=4, chief=True, shards=8)
    assert found is not None and (found.rank, len(found.trainers)) == (4, 5)
    assert (found.trainers[found.rank], found.trainers[0]) == (found.name, "chief 0")
    config = {"cluster": {"ps": PS}, "task": {"type": "chief", "index": 0}}
    found = cluster_of(None, {"TF_CONFIG": json.dumps(config)})
    assert found == Cluster(tuple(PS), "chief", 0, chief=True)
    assert found is not None and (found.rank, found.trainers) == (0, ("chief 0",))


def test_the_cluster_is_read_from_a_dictionary_or_a_file(tmp_path: Path) -> None:
    given = {"ps": PS, "worker": ["10.0.0.3:1"]}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(given))
    found = cluster_of(given, {})
    assert found == cluster_of(str(path), {}) == Cluster(tuple(PS), workers=1)
    assert found is not None and (found.rank, found.trainers) == (0, ("worker 0",))


def tf_config(**task: object) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": {"ps": PS}, "task": task})}


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        ({"worker": PS}, {}, "a cluster names its servers"),
        ({"ps": PS, "boss": PS}, {}, "got 'boss'"),
        ({"ps": [PS[0], PS[0]]}, {}, "'10.0.0.1:1' twice"),
        ({"ps": [PS[0], ""]}, {}, "a gap at 1"),
        ({"ps": [PS[0], None]}, {}, "a gap at 1"),
        ({"ps": PS[0]}, {}, "each with a list of addresses; got 'ps': '10.0.0.1:1'"),
        ({"ps": {"0": PS[0], "2": PS[1]}}, {}, "each with a list of addresses"),
        ({"ps": PS, "worker": [PS[1]]}, {}, "have '10.0.0.2:1', as ps has"),
        ({"ps": [PS[0], "10.0.0.2"]}, {}, "ps 1: a parameter server's address"),
        ({"ps": ["10.0.0.2:99999"]}, {}, "from 1 to 65535; got '10.0.0.2:99999'"),
        ({"ps": [3]}, {}, "got '3'"),
        (None, {"TF_CONFIG": "{"}, "TF_CONFIG must read"),
        (None, {"TF_CONFIG": "[]"}, "TF_CONFIG must read"),
        (None, tf_config(type="ps", index=2), "this is ps 2, and the cluster has 2"),
        (None, tf_config(type="boss", index=0), "a task reads job:index"),
        ({"ps": PS}, {"FXFLOW_PS_TASK": "worker"}, "got 'worker'"),
        ({"ps": PS}, {"FXFLOW_PS_WORKERS": "-1"}, "a whole number, got '-1'"),
    ],
)
def test_invalid_clusters_are_rejected(
    given: dict[str, list[str]] | None, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        cluster_of(given, environment)


def test_local_servers_leave_no_thread() -> None:
    pytest.importorskip("zmq")
    before = threading.active_count()
    servers = LocalServers(3)
    assert threading.active_count() == before + 3
    assert [s.view.primary(s.number) for s in servers.servers] == [0, 1, 2]
    servers.close()
    servers.close()
    assert threading.active_count() == before


def test_a_server_without_a_shard_to_hold_cannot_be_added() -> None:
    pytest.importorskip("zmq")
    servers = LocalServers(2)
    with pytest.raises(
        DistributedError, match="Restart the run with more --shards than"
    ):
        servers.add()
    servers.close()


# -- joining ---------------------------------------------------------------------------

pytest.importorskip("zmq")

# A server that counts as lost by mistake returns, and no test here counts deaths.
running = functools.partial(harness.running, silent_after=0.5)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_server_joins_and_leaves_again(tmp_path: Path, copies: int) -> None:
    with (
        running(tmp_path, copies, copies=copies, shards=6) as run,
        worker(run) as client,
    ):
        n = 3
        for i in range(n):
            assert totals(client, push(client)) == [i + 1] * 6
        joined = run.add()
        assert joined == copies
        view = run.until_placed(*range(copies + 1))
        served = Counter(held[0] for held in view.holders)
        assert set(served.values()) == {6 // (copies + 1)}
        assert totals(client, push(client)) == [n + 1] * 6
        # A server that gave a shard away has dropped it.
        for number, server in run.servers.items():
            assert sorted(server.shards) == view.held_by(number)
        # The first server leaves; the others get its shards.
        assert not run.leave(0).gave_up
        view = run.until_placed(*range(1, copies + 1))
        assert totals(client, push(client)) == [n + 2] * 6
        assert [run.sums(shard) for shard in range(6)] == [[n + 2] * copies] * 6
        # A worker that knows only the initial servers finds the others.
        if copies == 2:
            with worker(run) as late:
                assert totals(late, push(late)) == [n + 3] * 6


def test_a_server_leaves_before_it_has_the_first_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, 2, copies=1, shards=4) as run:
        replicas = run.servers[1]._replicas
        assert replicas.has_left  # no other server knows it
        enter, heard = replicas._enter, threading.Event()

        def late(view: View) -> None:
            if heard.is_set():
                enter(view)

        monkeypatch.setattr(replicas, "_enter", late)
        works = Work(run)
        works.start()
        run.until(lambda view: view.run > 0)
        threading.Timer(0.5, heard.set).start()
        assert not run.leave(1).gave_up
        run.until_placed(0)
        works.join()
        assert works.error is None
        assert [run.sums(shard) for shard in range(4)] == [[PUSHES]] * 4


def test_a_server_that_does_not_restart_loses_its_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingering: list[Hub] = []
    close = Dialer.close

    def noted(dialer: Dialer, linger: float = 0.0) -> None:
        # It would keep dialing under the worker's name, and receive the answers of the
        # restarted server.
        if linger and not dialer.connected and not dialer.closed:
            lingering.append(dialer._hub)
        close(dialer, linger)

    monkeypatch.setattr(Dialer, "close", noted)
    with (
        running(tmp_path, 3, shards=4, gone_after=1.0) as run,
        worker(run) as client,
    ):
        client.wait(push(client))
        run.stop(1)
        view = run.until_placed(0, 2)
        assert {frozenset(held) for held in view.holders} == {frozenset((0, 2))}
        assert totals(client, push(client)) == [2] * 4
        assert client._hub not in lingering
        # It returns after all, empty.
        run.start(1)
        view = run.until_placed(0, 1, 2)
        assert (
            Counter(s for held in view.holders for s in held).most_common(1)[0][1] < 4
        )
        assert totals(client, push(client)) == [3] * 4
        assert [run.sums(shard) for shard in range(4)] == [[3, 3]] * 4


def test_all_servers_restart_from_their_logs_after_shards_moved(tmp_path: Path) -> None:
    """A worker that knows the last view continues meanwhile."""
    with (
        running(tmp_path, 1, copies=1, shards=4, logs=True) as run,
        worker(run) as client,
    ):
        client.wait(push(client))
        run.add()
        view = run.until_placed(0, 1)
        client.wait(push(client))
        for number in (0, 1):
            run.stop(number)
        # The first server alone serves nothing: it knows that there is another.
        run.start(0)
        assert run.servers[0]._replicas.absent == [1]
        run.start(1)
        assert totals(client, push(client)) == [3] * 4
        assert run.now().holders == view.holders
        # The server that joined is the only one left, and is restarted.
        run.leave(0)
        run.stop(1)
        run.start(1)
        assert totals(client, push(client)) == [4] * 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"copies": 1}, "has 2 shards, one for each of its first servers"),
        ({"copies": 2}, "has 2 shards on 2 servers each and 4 servers: no shard"),
    ],
    ids=["fixed", "full"],
)
def test_a_server_is_refused_if_no_shard_is_left_for_it(
    tmp_path: Path, options: dict[str, int], why: str
) -> None:
    with running(tmp_path, 2, **options) as run, worker(run):
        if options["copies"] > 1:
            run.add(), run.add()
        with pytest.raises(DistributedError, match=re.escape(why)):
            enlist([run.address(0)], "ipc:///nowhere", deadline=5.0)


def test_a_refused_server_gets_the_reason(tmp_path: Path) -> None:
    with running(tmp_path, 1, copies=1, shards=2) as run:
        here = run.address(0)
        with pytest.raises(
            DistributedError, match="whose run has not begun did not arrive"
        ):
            enlist([here], "ipc:///nowhere", deadline=0.5)
        with pytest.raises(DistributedError, match="which already runs at"):
            enlist([here], here, deadline=0.5)
        with pytest.raises(DistributedError, match="reaches other machines"):
            enlist([here], "10.1.2.3:7000", deadline=5.0)
        with pytest.raises(DistributedError, match="no process answers there yet"):
            enlist([f"ipc://{tmp_path}/absent"], here, deadline=0.5)


def test_servers_of_two_runs_are_refused(tmp_path: Path) -> None:
    with (
        running(tmp_path, 1, copies=1, shards=2, logs=True) as one,
        running(tmp_path, 1, copies=1, shards=2) as two,
        worker(one),
        worker(two),
    ):
        both = [one.address(0), two.address(0)]
        with pytest.raises(DistributedError, match="belong to two runs"):
            enlist(both, f"ipc://{tmp_path}/joins", deadline=0.5)
        # The folder of another run is not used for shards of this one.
        folder = tmp_path / "copied"
        shutil.copytree(tmp_path / "server-0", folder)
        _, view = enlist([two.address(0)], f"ipc://{tmp_path}/joins", deadline=5.0)
        with Hub() as hub:
            listener = hub.listen(f"ipc://{tmp_path}/joins")
            with pytest.raises(DistributedError, match="another run than"):
                ShardServer(hub, listener, 1, view, folder=folder)
            (folder / "view.json").unlink()
            with pytest.raises(DistributedError, match="has shards of another run"):
                ShardServer(hub, listener, 1, view, folder=folder)


def test_an_initial_server_with_a_folder_of_another_run_ends(tmp_path: Path) -> None:
    with (
        running(tmp_path / "one", 2, logs=True) as one,
        running(tmp_path / "two", 2, logs=True) as two,
        worker(one),
        worker(two),
    ):
        two.stop(1)
        shutil.rmtree(tmp_path / "two" / "server-1")
        one.stop(1)
        shutil.copytree(tmp_path / "one" / "server-1", tmp_path / "two" / "server-1")
        ended: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading, "excepthook", lambda a: ended.append(str(a[1])))
            two.start(1)
            two.threads[1].join(20)
        (why,) = ended
        assert "are of another run than this server's folder" in why
        two.servers.pop(1), two.threads.pop(1)
