import os
import stat
from pathlib import Path

import pytest

from fxflow.distributed.messages.keys import (
    FILE_VARIABLE,
    VARIABLE,
    Keys,
    keys_from,
    keys_of,
    new_keys,
    zmq,
)
from fxflow.errors import DistributedError


def test_round_trips(tmp_path: Path) -> None:
    keys = new_keys()
    assert keys != new_keys()
    assert Keys.from_text(keys.to_text()) == keys
    path = tmp_path / "keys"
    path.write_text("old")
    os.chmod(path, 0o644)
    keys.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["keys"]
    assert Keys.load(path) == keys
    assert keys_of({}) is None
    assert keys_of({FILE_VARIABLE: str(path)}) == keys
    assert keys_of(keys.environment()) == keys


def test_keys_follow_from_a_secret() -> None:
    keys = keys_from("secret")
    assert keys == keys_from("secret")
    others = {getattr(keys_from("other"), name) for name in Keys.__slots__}
    own = {getattr(keys, name) for name in Keys.__slots__}
    assert len(own) == 4 and own.isdisjoint(others)
    public = zmq().curve_public(keys.server_secret.encode()).decode()
    assert public == keys.server_public


def test_clients_do_not_have_the_servers_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = new_keys()
    mine = keys.for_clients()
    assert keys.server_secret not in mine.to_text()
    assert mine.server_public == keys.server_public
    monkeypatch.setenv(VARIABLE, mine.to_text())
    assert keys_of() == mine


def test_secrets_are_not_in_reprs_and_errors() -> None:
    keys = new_keys()
    assert keys.client_secret not in repr(keys)
    assert keys.server_secret not in repr(keys)
    broken = keys.to_text().replace(keys.client_secret, keys.client_secret[:-1])
    with pytest.raises(DistributedError, match="client_secret is not a key") as error:
        Keys.from_text(broken)
    assert keys.client_secret[:-1] not in str(error.value)


@pytest.mark.parametrize("text", ["", "a,b", ",,,", "x" * 4000, "é" * 40 + ",,,"])
def test_invalid_keys_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DistributedError, match=str(path)):
        Keys.load(path)
    if text:
        with pytest.raises(DistributedError, match=VARIABLE):
            keys_of({VARIABLE: text})


def test_a_missing_keys_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DistributedError, match=r"cannot read the keys .*No such file"):
        keys_of({FILE_VARIABLE: str(tmp_path / "none")})
    with pytest.raises(OSError):
        new_keys().save(tmp_path / "none" / "keys")
