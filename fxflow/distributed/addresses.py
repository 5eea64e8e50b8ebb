"""Addresses ``host:port``, with IPv6 hosts in brackets; and those of parameter servers.

A host that only this machine reaches (the loopback interface) needs no secret; others
do.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from typing import Any, NamedTuple

from fxflow.errors import DistributedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Linux's request for the address of an interface (netdevice(7)).
_SIOCGIFADDR = 0x8915


class Address(NamedTuple):
    """Where a process listens.

    Attributes:
      host: a name or a number, without brackets.
      port: 1 to 65535; 0 stands for any free one.

    Example:
      >>> Address.parse("[::1]:7000")
      Address(host='::1', port=7000)
      >>> str(Address("::1", 7000))
      '[::1]:7000'
    """

    host: str
    port: int

    @classmethod
    def parse(
        cls, text: str, *, what: str = "an address", any_port: bool = False
    ) -> Address:
        """Reads ``host:port`` or ``[v6]:port``.

        Args:
          text: the address.
          what: it is, for the message.
          any_port: whether the port may be 0.

        Raises:
          ValueError: it is not of that form.
        """
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if (
            not (colon and host and port.isascii() and port.isdigit())
            or not (0 if any_port else 1) <= int(port) < 65536
            or any(letter.isspace() for letter in host)
        ):
            raise ValueError(
                f"{what} reads host:port, such as 10.0.0.1:1234; got {text!r}"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def listen(self, what: str = "the coordinator") -> socket.socket:
        """Returns a socket that listens here.

        Args:
          what: listens, for the message.

        Raises:
          DistributedError: the port is in use, or the host is not this machine's.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server(
                tuple(self), family=family, backlog=512, reuse_port=False
            )
        except OSError as error:
            why = {
                errno.EADDRINUSE: "the port is in use; choose another, or end the "
                "process that uses it",
                errno.EADDRNOTAVAIL: "this machine does not have that address",
                errno.EACCES: "this user may not listen at that port",
            }.get(error.errno or 0, str(error.strerror or error))
            raise DistributedError(f"{what} cannot listen at {self}: {why}") from None


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches a host."""
    return host.startswith("127.") or host in ("::1", "localhost")


def external_address() -> str:
    """Returns an address of this machine that is not the loopback's; empty if none."""
    if fcntl is None or sys.platform != "linux":
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                asked = struct.pack("256s", name.encode())
                found = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, asked)
                address = socket.inet_ntoa(found[20:24])
                if not address.startswith("127."):
                    return address
    return ""


def address_towards(host: str) -> str:
    """Returns the address of this machine from which a host, or user@host, is reached.

    Without a route it is this machine's name.
    """
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe,
    ):
        probe.connect((host.rpartition("@")[2], 9))  # sends nothing
        return str(probe.getsockname()[0])
    return socket.gethostname()


# -- parameter servers -----------------------------------------------------------------


def server_address(text: str, *, bind: bool = False) -> Address | None:
    """Returns host and port of a server; None for one within this machine.

    Args:
      text: as of `endpoint`.
      bind: whether port 0 is allowed.

    Raises:
      DistributedError: it is not an address.

    Example:
      >>> server_address("tcp://[::1]:7000"), server_address("ipc:///tmp/a")
      (Address(host='::1', port=7000), None)
    """
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "tcp", text
    if scheme in ("ipc", "inproc") and rest:
        return None
    with contextlib.suppress(ValueError):
        if scheme == "tcp":
            return Address.parse(rest, any_port=bind)
    raise DistributedError(
        "an address of a parameter server reads host:port, tcp://host:port, "
        f"ipc://path or inproc://name, its port from 1 to 65535; got {text!r}"
    )


def endpoint(text: str, *, bind: bool, keys: Any = None) -> str:
    """Returns the address of a server as ZeroMQ reads it.

    Args:
      text: ``host:port``, ``tcp://host:port``, ``ipc://path`` or ``inproc://name``;
        port 0 is any free one.
      bind: whether a socket is to listen there.
      keys: those of the run; without, other machines are refused.

    Raises:
      DistributedError: it is not an address, or one that needs keys.
    """
    address = server_address(text, bind=bind)
    if address is None:
        return text
    if keys is None and not is_loopback(address.host):
        raise DistributedError(
            f"{'listening' if bind else 'dialling'} at {text} goes beyond this machine "
            "and needs keys that keep strangers out: fxflow launch makes them; "
            "elsewhere write a file with new_keys().save(path) and set "
            "FXFLOW_PS_KEYS_FILE to it in all processes of the run"
        )
    # ZeroMQ listens at numbers only.
    host = _numeric(address.host) if bind else address.host
    return f"tcp://{Address(host, address.port)}"


def _numeric(host: str) -> str:
    """Returns the number of a host name; "*" stays."""
    if host == "*":
        return host
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise DistributedError(
            f"{host} cannot be listened at: {error.strerror}"
        ) from None
