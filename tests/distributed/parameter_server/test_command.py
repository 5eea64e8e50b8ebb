from pathlib import Path

import pytest

from fxflow.distributed.parameter_server.command import main
from fxflow.distributed.parameter_server.keys import Keys

pytest.importorskip("zmq")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say where the servers are"),
        (["--servers", "127.0.0.1:1"], "--number must be one of 0 to 0, got None"),
        (["--servers", "127.0.0.1:1", "--number", "1"], "0 to 0, got 1"),
    ],
)
def test_options(
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
    assert "needs keys that keep strangers out" in capsys.readouterr().err


def test_the_task_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FXFLOW_PS_SERVERS", "127.0.0.1:1,nonsense")
    monkeypatch.setenv("FXFLOW_PS_TASK", "ps:1")
    assert main([]) == 1
    assert "nonsense" in capsys.readouterr().err


def test_keys_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--make-keys", str(tmp_path / "keys")]) == 0
    server, client = (Keys.load(tmp_path / "keys" / n) for n in ("server", "client"))
    assert server.server_secret and server.for_clients() == client
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()}
    assert modes == {0o600}
    (tmp_path / "file").touch()
    assert main(["--make-keys", str(tmp_path / "file")]) == 1
    assert "the keys cannot be written" in capsys.readouterr().err
