import pytest

pytest.importorskip("zmq")

from fxflow.distributed.parameter_server import LocalServers
from fxflow.distributed.parameter_server.command import main


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the addresses of the servers"),
        (["--servers", "127.0.0.1:1", "--every", "0"], "must be more than 0; got 0"),
        (["--servers", "10.1.2.3:7000"], "needs keys"),
    ],
)
def test_invalid_options_exit_with_a_message(
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
