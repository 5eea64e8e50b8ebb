import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import LocalServers
from fxflow.distributed.parameter_server.command import main
from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from tests.distributed.parameter_server.server.harness import (
    ZEROS,
    models_of,
    push,
    totals,
)

pytest.importorskip("zmq")

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the addresses of the servers"),
        (["--servers", "127.0.0.1:1"], "--number must be one of 0 to 0, got None"),
        (["--servers", "127.0.0.1:1", "--number", "1"], "0 to 0, got 1"),
        (
            ["--servers", "127.0.0.1:1,b:1", "--number", "0", "--shards", "1"],
            "--shards must be at least 2, the number of servers, got 1",
        ),
    ],
)
def test_invalid_options_exit_with_a_message(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_address_beyond_this_machine_needs_keys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FXFLOW_PS_KEYS", raising=False)
    assert main(["--servers", "10.1.2.3:7000", "--number", "0"]) == 1
    assert "needs keys for authentication" in capsys.readouterr().err


def test_the_environment_names_the_task(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FXFLOW_PS_SERVERS", "127.0.0.1:1,nonsense")
    monkeypatch.setenv("FXFLOW_PS_TASK", "ps:1")
    assert main([]) == 1
    assert "nonsense" in capsys.readouterr().err


def test_make_keys_writes_the_keys_of_servers_and_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--make-keys", str(tmp_path / "keys")]) == 0
    server, client = (Keys.load(tmp_path / "keys" / n) for n in ("server", "client"))
    assert server.server_secret and server.for_clients() == client
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()}
    assert modes == {0o600}
    (tmp_path / "file").touch()
    assert main(["--make-keys", str(tmp_path / "file")]) == 1
    assert "the keys cannot be written" in capsys.readouterr().err


def started(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fxflow.distributed.parameter_server", *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_one_process_joins_and_another_leaves(tmp_path: Path) -> None:
    first, second = (f"ipc://{tmp_path}/{name}" for name in ("first", "second"))
    view = first_view([first], shards=2)
    processes = [
        started("--number", "0", "--servers", first, "--shards", "2"),
        started("--join", second, "--servers", first),
    ]
    client = WorkerClient(view, deadline=60.0)
    try:
        # The second server waits until the run has begun.
        models = models_of(view)
        client.wait(client.begin(models, [[ZEROS]] * 2))
        totals_so_far = 0
        while len(client.view.members) < 2 or not client.view.served_by(1):
            totals_so_far += 1
            assert totals(client, push(client)) == [totals_so_far] * 2
        processes[0].send_signal(signal.SIGTERM)
        assert processes[0].wait(30) == 0
        assert totals(client, push(client)) == [totals_so_far + 1] * 2
        assert client.view.members == (1,)
        client.close()
        # It is the last server, so none takes over its shards.
        processes[1].send_signal(signal.SIGTERM)
        said = processes[1].communicate(timeout=30)[1]
        assert processes[1].returncode == 0
        assert f"server 1 of 2 listens at {second}" in said
    finally:
        client.close()
        for process in processes:
            process.kill()
            process.communicate()


# -- watch and trace -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the addresses of the servers"),
        (["--servers", "127.0.0.1:1", "--every", "0"], "must be more than 0; got 0"),
        (["--servers", "10.1.2.3:7000"], "needs keys"),
    ],
)
def test_invalid_options_of_watch_exit_with_a_message(
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FXFLOW_PS_KEYS", "FXFLOW_PS_KEYS_FILE", "FXFLOW_PS_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["watch", *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_once_prints_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    local = LocalServers(1)
    servers = f"{local.cluster.servers[0]},ipc:///tmp/fxflow-no-server-there"
    options = ["watch", "--every", "0.1", "--once", "--servers"]
    assert main([*options, local.cluster.servers[0]]) == 0
    assert main([*options, servers]) == 1
    local.close()
    out = capsys.readouterr().out
    assert "1 server, 0 workers" in out
    assert "server 1 at ipc:///tmp/fxflow-no-server-there does not answer" in out
    assert "\x1b" not in out
