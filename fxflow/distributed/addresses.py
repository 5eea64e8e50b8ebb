"""Network addresses: ``host:port`` (IPv6 in brackets) and those of parameter servers.

A loopback address, which only this machine can reach, needs no secret; others do.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from typing import Any, NamedTuple

from fxflow.errors import DistributedError

if sys.platform == "linux":
    import fcntl

#: Linux's request for the address of an interface (netdevice(7)).
_SIOCGIFADDR = 0x8915


class Address(NamedTuple):
    """Where a process listens.

    Attributes:
      host: a name or an IP address, without brackets.
      port: 1 to 65535; 0 means any free port.

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
          what: what the address is for, in the error's message.
          any_port: whether the port may be 0.

        Raises:
          ValueError: `text` does not have that form.
        """
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if (
            not (colon and host and port.isascii() and port.isdigit())
            or not (0 if any_port else 1) <= int(port) < 65536
            or any(letter.isspace() for letter in host)
        ):
            raise ValueError(
                f"{what} must be host:port, such as 10.0.0.1:1234; got {text!r}"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def listen(self, what: str = "the coordinator") -> socket.socket:
        """Returns a socket that listens here; host "*" means all IPv4 interfaces.

        Args:
          what: what listens, in the error's message.

        Raises:
          DistributedError: the port is in use, or the host is not this machine's.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server(
                ("" if self.host == "*" else self.host, self.port),
                family=family,
                backlog=512,
                reuse_port=False,
            )
        except OSError as error:
            why = {
                errno.EADDRINUSE: "the port is in use; choose another, or end the "
                "process that uses it",
                errno.EADDRNOTAVAIL: "this machine does not have that address",
                errno.EACCES: "this user may not listen on that port",
            }.get(error.errno or 0, str(error.strerror or error))
            raise DistributedError(f"{what} cannot listen at {self}: {why}") from None


def is_loopback(host: str) -> bool:
    """Returns whether a host is a loopback address, which only this machine reaches."""
    return host.startswith("127.") or host in ("::1", "localhost")


def external_address() -> str:
    """Returns an address of this machine other than loopback; empty if it has none."""
    if sys.platform == "linux":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):
                    request = struct.pack("256s", name.encode())
                    reply = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
                    address = socket.inet_ntoa(reply[20:24])
                    if not address.startswith("127."):
                        return address
    return ""


def address_towards(host: str) -> str:
    """Returns this machine's address on the route to a host, or user@host.

    Without a route, returns this machine's name.
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
    """Returns a server's host and port; None for ``ipc://`` and ``inproc://``.

    Args:
      text: an address as `endpoint` takes it.
      bind: whether port 0 is allowed.

    Raises:
      DistributedError: `text` is not an address.

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
        "a parameter server's address must be host:port, tcp://host:port, "
        f"ipc://path or inproc://name, with a port from 1 to 65535; got {text!r}"
    )


def endpoint(text: str, *, bind: bool, keys: Any = None) -> str:
    """Returns a server's address in ZeroMQ's form.

    Args:
      text: ``host:port``, ``tcp://host:port``, ``ipc://path`` or ``inproc://name``;
        port 0 means any free port.
      bind: whether a socket is to listen there.
      keys: the run's keys; without keys, only this machine's addresses are allowed.

    Raises:
      DistributedError: `text` is not an address, or needs keys.
    """
    address = server_address(text, bind=bind)
    if address is None:
        return text
    if keys is None and not is_loopback(address.host):
        raise DistributedError(
            f"{'listening at' if bind else 'connecting to'} {text} reaches other "
            "machines and needs keys for authentication: fxflow launch makes them; "
            "without it, write a file with new_keys().save(path) and set "
            "FXFLOW_PS_KEYS_FILE to it in all processes of the run"
        )
    # ZeroMQ listens at IP addresses only.
    host = _ip_address(address.host) if bind else address.host
    return f"tcp://{Address(host, address.port)}"


def _ip_address(host: str) -> str:
    """Returns the IP address of a host name; "*" stays "*"."""
    if host == "*":
        return host
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise DistributedError(f"cannot listen at {host}: {error.strerror}") from None
