import pytest

from fxflow.distributed.messages.keys import new_keys
from fxflow.distributed.parameter_server.addresses import address_of
from fxflow.errors import DistributedError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:5", "tcp://127.0.0.1:5"),
        ("tcp://127.9.9.9:5", "tcp://127.9.9.9:5"),
        ("[::1]:65535", "tcp://[::1]:65535"),
        ("localhost:5", "tcp://localhost:5"),
        ("ipc://a", "ipc://a"),
        ("inproc://b", "inproc://b"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert address_of(text, bind=False) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a:",
        ":5",
        "a:b",
        "a:65536",
        "a:-1",
        "udp://a:5",
        "ipc://",
        "a:٣",
        "a:0",
        " a:1",
        "a :1",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(DistributedError, match="reads host:port"):
        address_of(text, bind=False)


@pytest.mark.parametrize("text", ["10.0.0.1:5", "*:5", "0.0.0.0:5", "[::]:5", "far:5"])
def test_other_machines_need_keys(text: str) -> None:
    with pytest.raises(DistributedError, match=r"listening at .* needs keys"):
        address_of(text, bind=True)
    with pytest.raises(DistributedError, match=r"dialling at .* needs keys"):
        address_of(text, bind=False)
    assert address_of(text, bind=False, keys=new_keys()) == f"tcp://{text}"


def test_names_become_numbers_where_they_are_listened_at() -> None:
    assert address_of("localhost:0", bind=True) in (
        "tcp://127.0.0.1:0",
        "tcp://[::1]:0",
    )
    assert address_of("*:5", bind=True, keys=new_keys()) == "tcp://*:5"
    with pytest.raises(DistributedError, match=r"no\.such\.host cannot be listened at"):
        address_of("no.such.host:5", bind=True, keys=new_keys())
