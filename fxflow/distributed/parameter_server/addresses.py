"""Addresses of the asynchronous plane, and which of them need keys."""

from __future__ import annotations

import socket

from fxflow.distributed.messages.channel import is_loopback
from fxflow.distributed.messages.keys import Keys
from fxflow.errors import DistributedError


def address_of(text: str, *, bind: bool, keys: Keys | None = None) -> str:
    """Returns an address as ZeroMQ reads it.

    Args:
      text: ``host:port``, ``tcp://host:port``, ``ipc://path`` or ``inproc://name``;
        port 0 is any free one.
      bind: whether it is to be listened at.
      keys: those of the run; without, no other machine may be spoken with.

    Raises:
      DistributedError: it is no address, or one that needs keys.
    """
    host, port = parts_of(text, bind=bind)
    if not port:
        return host
    if keys is None and not is_loopback(host):
        raise DistributedError(
            f"{'listening' if bind else 'dialling'} at {text} goes beyond this machine "
            "and needs keys that keep strangers out: fxflow launch makes them; "
            "elsewhere write a file with new_keys().save(path) and set "
            "FXFLOW_PS_KEYS_FILE to it in all processes of the run"
        )
    if bind:
        host = _numeric(host)
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def parts_of(text: str, *, bind: bool = False) -> tuple[str, str]:
    """Returns host and port of an address; of one that has none all of it, and "".

    Args:
      text: as of `address_of`.
      bind: whether port 0 is one.

    Raises:
      DistributedError: it is no address.

    Example:
      >>> parts_of("[::1]:7000"), parts_of("ipc:///tmp/a")
      (('::1', '7000'), ('ipc:///tmp/a', ''))
    """
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "tcp", text
    if scheme in ("ipc", "inproc") and rest:
        return text, ""
    host, colon, port = rest.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if (
        scheme != "tcp"
        or not (colon and host and port.isascii() and port.isdigit())
        or not (0 if bind else 1) <= int(port) < 65536
        or any(letter.isspace() for letter in host)
    ):
        raise DistributedError(
            "an address of a parameter server reads host:port, tcp://host:port, "
            f"ipc://path or inproc://name, its port from 1 to 65535; got {text!r}"
        )
    return host, port


def _numeric(host: str) -> str:
    """Returns the address of a host name, since ZeroMQ binds to numbers only."""
    if host == "*":
        return host
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise DistributedError(
            f"{host} cannot be listened at: {error.strerror}"
        ) from None
