"""What groups of models under one name have in common: who asks, and being alike."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.service import Origin
from fxflow.serve.signatures import Signature

#: Characters of an id or a context: they are kept.
_LONGEST = 256


def checked_origin(origin: Origin) -> Origin:
    """Returns who asks, with an id.

    Args:
      origin: what is known of it.

    Returns:
      The same, with an id that nobody guesses if it had none.

    Raises:
      ServeError: status 400; a text of it is too long to be kept.
    """
    for name, text in (("id", origin.id), ("context", origin.context)):
        if len(text) > _LONGEST:
            raise ServeError(
                f"{name!r} may have {_LONGEST} characters, got {len(text)}", 400
            )
    if origin.id:
        return origin._replace(chosen=True)
    return origin._replace(id=secrets.token_hex(16))


def check_alike(name: str, signatures: Mapping[str, Signature]) -> None:
    """Checks that models can stand for each other.

    Args:
      name: of their group.
      signatures: of the models.

    Raises:
      ServeError: status 400; two differ in inputs, outputs, batches or streams.
    """
    for first, other in itertools.pairwise(signatures):
        for part in ("inputs", "outputs", "batched", "streamed"):
            ours, theirs = (
                _described(getattr(signatures[m], part)) for m in (first, other)
            )
            if ours != theirs:
                raise ServeError(
                    f"{name!r}: models {first!r} and {other!r} differ in {part}: "
                    f"{ours} and {theirs}",
                    400,
                )


def _described(part: Any) -> str:
    if isinstance(part, bool):
        return str(part)
    # Names of open sizes may differ.
    return ", ".join(
        f"{spec.name}: {spec.datatype}"
        f"{[size if isinstance(size, int) else -1 for size in spec.shape]}"
        for spec in part
    )
