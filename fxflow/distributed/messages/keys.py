"""Keys of ZeroMQ's CURVE handshake, which authenticates processes to a run's servers.

The servers share one key pair and their clients another; the launcher makes both. A
server admits a process that has the servers' public key and the clients' pair. Messages
are encrypted. Keys are written in Z85, ZeroMQ's encoding of 32 bytes as 40 characters.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fxflow.devices import files
from fxflow.errors import DistributedError

#: The environment variables for the keys themselves, and for a file that holds them.
VARIABLE = "FXFLOW_PS_KEYS"
FILE_VARIABLE = "FXFLOW_PS_KEYS_FILE"

_LENGTH = 40
# RFC 32 of ZeroMQ.
_ALPHABET = frozenset(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a run, 40 characters each.

    Attributes:
      server_public: the public key by which clients authenticate servers.
      client_public: the public key by which servers authenticate clients.
      client_secret: the clients' secret key.
      server_secret: the servers' secret key; empty in a process that only connects.
    """

    server_public: str
    client_public: str
    client_secret: str = field(repr=False)
    server_secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name in self.__slots__:
            key = getattr(self, name)
            if name == "server_secret" and not key:
                continue
            if len(key) != _LENGTH or not _ALPHABET.issuperset(key):
                # Without the key itself: errors are written to logs.
                raise DistributedError(
                    f"{name} is not a key: expected {_LENGTH} characters of Z85, as "
                    f"new_keys() makes them; it has {len(key)}"
                )

    def for_clients(self) -> Keys:
        """Returns the keys of a process that is not a server."""
        return Keys(self.server_public, self.client_public, self.client_secret)

    def to_text(self) -> str:
        """Returns the keys in one line, the form for the environment and files."""
        return ",".join(getattr(self, name) for name in self.__slots__)

    @staticmethod
    def from_text(text: str, source: str = "the text") -> Keys:
        """Returns the keys that `to_text` wrote.

        Args:
          text: one line.
          source: where the text comes from, for the error's message.

        Raises:
          DistributedError: the text is not four keys.
        """
        parts = text.strip().split(",")
        if len(parts) != 4:
            raise DistributedError(
                f"{source} does not hold the keys of a run: expected 4 keys in one "
                f"line, separated by commas; got {len(parts)} part(s)"
            )
        try:
            return Keys(*parts)
        except DistributedError as error:
            raise DistributedError(f"{source}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the keys to a file that this user alone can read.

        Args:
          path: the file, which is replaced if it exists.

        Raises:
          OSError: the file cannot be written.
        """
        files.write(path, f"{self.to_text()}\n".encode("ascii"), mode=0o600)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Keys:
        """Returns the keys in a file that `save` wrote.

        Raises:
          DistributedError: the file cannot be read, or does not hold keys.
        """
        try:
            with open(path, encoding="ascii") as file:
                return Keys.from_text(file.read(1 << 10), os.fspath(path))
        except (OSError, UnicodeDecodeError) as error:
            raise DistributedError(
                f"cannot read the keys in {os.fspath(path)}: {error}"
            ) from None

    def environment(self) -> dict[str, str]:
        """Returns the variables that give the keys to a child process."""
        return {VARIABLE: self.to_text()}


def new_keys() -> Keys:
    """Returns the keys of a new run.

    Raises:
      ImportError: pyzmq is missing.
    """
    curve_keypair = zmq().curve_keypair
    server_public, server_secret = (key.decode() for key in curve_keypair())
    client_public, client_secret = (key.decode() for key in curve_keypair())
    return Keys(server_public, client_public, client_secret, server_secret)


def keys_from(token: str) -> Keys:
    """Returns keys that all processes with the same secret derive from it.

    Args:
      token: the run's secret, such as `new_token` makes.

    Raises:
      ImportError: pyzmq is missing.
    """
    module = zmq()

    def pair(owner: str) -> tuple[str, str]:
        text = f"fxflow key of the {owner}: {token}"
        secret = module.utils.z85.encode(hashlib.sha256(text.encode()).digest())
        return module.curve_public(secret).decode(), secret.decode()

    server_public, server_secret = pair("servers")
    client_public, client_secret = pair("clients")
    return Keys(server_public, client_public, client_secret, server_secret)


def keys_of(environment: Mapping[str, str] | None = None) -> Keys | None:
    """Returns the keys in the environment: FXFLOW_PS_KEYS or FXFLOW_PS_KEYS_FILE.

    Args:
      environment: the variables; None for this process's.

    Returns:
      The keys, or None if neither variable is set.

    Raises:
      DistributedError: the text or the file does not hold keys.
    """
    variables = os.environ if environment is None else environment
    if text := variables.get(VARIABLE):
        return Keys.from_text(text, VARIABLE)
    if path := variables.get(FILE_VARIABLE):
        return Keys.load(path)
    return None


def zmq() -> Any:
    """Returns the module `zmq`.

    Raises:
      ImportError: pyzmq is missing.
    """
    try:
        import zmq.utils.z85
    except ImportError:
        raise ImportError(
            "the asynchronous parameter server needs ZeroMQ: pip install "
            "'fxflow[distributed]'"
        ) from None
    return zmq
