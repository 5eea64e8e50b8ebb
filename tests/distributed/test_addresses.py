import pytest

from fxflow.distributed.addresses import (
    Address,
    endpoint,
    external_address,
    server_address,
)
from fxflow.distributed.messages.keys import new_keys
from fxflow.errors import DistributedError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("h:1", ("h", 1)),
        ("10.0.0.1:65535", ("10.0.0.1", 65535)),
        ("[::1]:2", ("::1", 2)),
    ],
)
def test_addresses_are_parsed_and_formatted(
    text: str, address: tuple[str, int]
) -> None:
    assert Address.parse(text) == address
    assert str(Address(*address)) == text


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:x", "h:0", "h:65536", "h:٣"])
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a coordinator address must be host:port"):
        Address.parse(text, what="a coordinator address")


def test_port_0_is_accepted_only_if_allowed() -> None:
    assert Address.parse("h:0", any_port=True).port == 0
    with Address("127.0.0.1", 0).listen() as listener:
        taken = Address(*listener.getsockname())
        with pytest.raises(DistributedError, match="this worker cannot listen at"):
            taken.listen("this worker")


def test_the_external_address_is_not_a_loopback_address() -> None:
    assert not external_address().startswith("127.")


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
def test_endpoints_have_zeromqs_form(text: str, address: str) -> None:
    assert endpoint(text, bind=False) == address


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
def test_invalid_server_addresses_are_refused(text: str) -> None:
    with pytest.raises(DistributedError, match="must be host:port"):
        endpoint(text, bind=False)


@pytest.mark.parametrize("text", ["10.0.0.1:5", "*:5", "0.0.0.0:5", "[::]:5", "far:5"])
def test_other_machines_need_keys(text: str) -> None:
    with pytest.raises(DistributedError, match=r"listening at .* needs keys"):
        endpoint(text, bind=True)
    with pytest.raises(DistributedError, match=r"connecting to .* needs keys"):
        endpoint(text, bind=False)
    assert endpoint(text, bind=False, keys=new_keys()) == f"tcp://{text}"


def test_ipc_and_inproc_addresses_have_no_host() -> None:
    assert server_address("ipc:///tmp/a") is None
    assert server_address("tcp://far:5") == Address("far", 5)


def test_listening_resolves_names_to_ip_addresses() -> None:
    assert endpoint("localhost:0", bind=True) in (
        "tcp://127.0.0.1:0",
        "tcp://[::1]:0",
    )
    assert endpoint("*:5", bind=True, keys=new_keys()) == "tcp://*:5"
    with pytest.raises(DistributedError, match=r"cannot listen at no\.such\.host"):
        endpoint("no.such.host:5", bind=True, keys=new_keys())
