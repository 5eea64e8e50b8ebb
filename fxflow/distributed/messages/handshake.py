"""Plain sockets between processes of a run, which prove to each other that they are.

An address is a path or ``ipc://path`` (a Unix socket, for processes of one machine) or
``host:port``. Each end sends a random number, and the other's number together with its
own hashed with a key that the run's `keys` determine. So no secret is sent, and what
was overheard cannot be used again. What follows is not encrypted. Without keys, only
addresses of this machine are used, and Unix sockets only by processes of this user.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable

from fxflow.distributed.addresses import Address, is_loopback, server_address
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.processes import require_posix
from fxflow.errors import DistributedError

_NUMBER, _HASH = 32, 32
_MARK, _YES, _NO = b"fxd1", b"yes.", b"no.."
#: Seconds between attempts to connect: the shortest and the longest.
_RETRY, _LONGEST_RETRY = 0.005, 0.5


def parsed(address: str) -> Address | str:
    """Returns an address's host and port, or the path of its Unix socket.

    Raises:
      DistributedError: it is neither.

    Example:
      >>> parsed("10.0.0.1:7000"), parsed("ipc:///tmp/a"), parsed("/tmp/a")
      (Address(host='10.0.0.1', port=7000), '/tmp/a', '/tmp/a')
    """
    if address.startswith("/"):
        return address
    scheme, _, path = address.partition("://")
    if scheme == "ipc" and path:
        return path
    if scheme != "inproc":
        with contextlib.suppress(DistributedError):
            found = server_address(address, bind=True)
            if found is not None:
                return found
    raise DistributedError(
        "an address is host:port, with a port from 1 to 65535, or the path of a Unix "
        f"socket; got {address!r}"
    )


def is_local(address: str) -> bool:
    """Returns whether only processes of this machine can connect to an address."""
    found = parsed(address)
    return isinstance(found, str) or is_loopback(found.host)


def require_keys(address: str, keys: Keys | None) -> None:
    """Checks that there are keys if other machines can reach an address.

    Raises:
      DistributedError: there are none.
    """
    if keys is None and not is_local(address):
        raise DistributedError(
            f"{address} reaches other machines and needs keys for authentication: "
            "fxflow launch makes them; without it, write a file with "
            "new_keys().save(path) and set FXFLOW_PS_KEYS_FILE to it in all processes "
            "of the run"
        )


def listen(address: str, keys: Keys | None, what: str) -> socket.socket:
    """Returns a socket that listens at an address.

    Args:
      address: of this machine; ``*:port`` means all of its interfaces.
      keys: of the run; None allows only local addresses.
      what: what listens, in the error's message.

    Raises:
      DistributedError: the address needs keys, is in use, or is not this machine's.
    """
    require_posix("listening")
    found = parsed(address)
    require_keys(address, keys)
    if not isinstance(found, str):
        return found.listen(what)
    require_posix("messages between processes")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(found)
        made.bind(found)
        os.chmod(found, 0o600)
        made.listen(512)
    except OSError as error:
        made.close()
        raise DistributedError(
            f"{what} cannot listen at {address}: {error.strerror or error}"
        ) from None
    return made


def _remove_stale(path: str) -> None:
    """Removes the file of a Unix socket at which no process listens any more."""
    require_posix("messages between processes")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except FileNotFoundError:
            pass
        else:
            raise OSError(errno.EADDRINUSE, "another process listens there")


def connect(
    address: str,
    keys: Keys | None,
    seconds: float,
    what: str,
    *,
    retry: bool = True,
    check: Callable[[], None] = lambda: None,
) -> socket.socket:
    """Connects to an address, retrying until a process listens there.

    Args:
      address: where the process listens.
      keys: of the run; None allows only local addresses.
      seconds: how long to retry, and to wait for the answer.
      what: what listens there, in the error's message.
      retry: whether to wait for a process if none listens there.
      check: called before each attempt; raises an error if no process will listen.

    Raises:
      DistributedError: no process listens there in time, or it is not of this run.
    """
    require_posix("connecting")
    found = parsed(address)
    require_keys(address, keys)
    end, pause = time.monotonic() + seconds, _RETRY
    require_posix("messages between processes")
    family = socket.AF_UNIX if isinstance(found, str) else socket.AF_INET
    if isinstance(found, Address) and ":" in found.host:
        family = socket.AF_INET6
    while True:
        check()
        made = socket.socket(family, socket.SOCK_STREAM)
        made.settimeout(max(0.1, end - time.monotonic()))
        try:
            made.connect(found if isinstance(found, str) else tuple(found))
            if made.getsockname() == made.getpeername() != "":
                # A TCP self-connection: the kernel chose the target's port as source.
                raise ConnectionRefusedError("connection refused")
            break
        except OSError as error:
            made.close()
            if not retry or time.monotonic() + pause >= end:
                raise DistributedError(
                    f"{what} does not answer at {address} within {seconds:g} s "
                    f"({error.strerror or error})",
                    seconds=seconds,
                ) from None
        time.sleep(pause)
        pause = min(_LONGEST_RETRY, pause * 1.5)
    try:
        _introduce(made, keys, max(0.1, end - time.monotonic()))
    except (OSError, EOFError, DistributedError) as error:
        made.close()
        raise DistributedError(f"{what} at {address}: {error}") from None
    return _ready(made)


def _introduce(connection: socket.socket, keys: Keys | None, seconds: float) -> None:
    """Proves that this process is of the run, and checks that the other is."""
    connection.settimeout(seconds)
    begin = _read(connection, len(_MARK) + _NUMBER)
    if begin[: len(_MARK)] != _MARK:
        raise DistributedError("it is not a process of fxflow")
    theirs, own = begin[len(_MARK) :], secrets.token_bytes(_NUMBER)
    connection.sendall(own + _proof(keys, b"connects", theirs, own))
    answer = _read(connection, len(_YES) + _HASH)
    expected = _YES + _proof(keys, b"admits", own, theirs)
    if not hmac.compare_digest(answer, expected):
        raise DistributedError(
            "it is not of this run: only one of the two has keys, or they are of "
            "different runs"
        )


def admit(connection: socket.socket, keys: Keys | None, seconds: float) -> None:
    """Checks that a process that connected is of the run.

    Args:
      connection: new; closed if it is not admitted.
      keys: of the run.
      seconds: that the other end has.

    Raises:
      DistributedError: it is not admitted.
    """
    connection.settimeout(seconds)
    try:
        _require_same_user(connection)
        own = secrets.token_bytes(_NUMBER)
        connection.sendall(_MARK + own)
        answer = _read(connection, _NUMBER + _HASH)
        theirs, proof = answer[:_NUMBER], answer[_NUMBER:]
        if not hmac.compare_digest(proof, _proof(keys, b"connects", own, theirs)):
            connection.sendall(_NO + bytes(_HASH))
            raise DistributedError("it does not have the keys of this run")
        connection.sendall(_YES + _proof(keys, b"admits", theirs, own))
    except (OSError, EOFError, DistributedError) as error:
        connection.close()
        raise DistributedError(f"a connection was refused: {error}") from None
    _ready(connection)


def _proof(keys: Keys | None, role: bytes, theirs: bytes, own: bytes) -> bytes:
    secret = b"" if keys is None else keys.client_secret.encode()
    return hmac.digest(secret, b"fxflow " + role + theirs + own, hashlib.sha256)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("it closed the connection")
        data += piece
    return data


def _require_same_user(connection: socket.socket) -> None:
    require_posix("messages between processes")
    if connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, user, _ = struct.unpack("3i", found)
    if user != os.geteuid():
        raise DistributedError("it is a process of another user")


def _ready(connection: socket.socket) -> socket.socket:
    require_posix("messages between processes")
    connection.settimeout(None)
    with contextlib.suppress(OSError):
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _PROBES.items():
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


#: A machine that is down is noticed within 20 seconds, also while all processes wait.
_PROBES = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
