"""Answers that were given before, by the bytes of what was asked.

Bounded by bytes, and evicted by CLOCK: an answer that was asked for again since the
hand last passed is spared once. A cache belongs to one loaded version of a model, and
goes with it.

Source: Crankshaw et al., Clipper, 2017, section 4.2.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fxflow.serve.signatures import to_bytes

Array = np.ndarray[Any, Any]
#: Bytes of Python's own for an entry, about.
_ENTRY = 500


def key_of(inputs: Iterable[Array]) -> bytes:
    """Returns what stands for the inputs of a request.

    Args:
      inputs: arrays, in order.

    Returns:
      A digest of their dtypes, shapes and bytes.

    Example:
      >>> one, other = np.zeros((2, 1)), np.zeros((1, 2))
      >>> key_of([one]) == key_of([one.copy()]), key_of([one]) == key_of([other])
      (True, False)
    """
    digest = hashlib.blake2b(digest_size=20)
    for array in inputs:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(to_bytes(np.ascontiguousarray(array)))
    return digest.digest()


def _nbytes(outputs: Mapping[str, Array]) -> int:
    total = _ENTRY
    for array in outputs.values():
        if array.dtype == object:
            total += sum(50 + len(item) for item in array.ravel())
        total += array.nbytes
    return total


class PredictionCache:
    """Answers by key, of at most `limit` bytes together.

    Args:
      limit: bytes; 0 keeps nothing.

    Attributes:
      hits, misses: how often `get` found something, and how often not.
      nbytes: of all answers.

    Example:
      >>> cache = PredictionCache(limit=10_000)
      >>> cache.put(b"k", {"y": np.ones(2)})
      >>> cache.get(b"k")["y"].tolist(), cache.get(b"other")
      ([1.0, 1.0], None)
    """

    hits: int
    misses: int
    nbytes: int

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.hits = self.misses = self.nbytes = 0
        #: In the order in which the hand comes to them: outputs, bytes, asked again.
        self._entries: OrderedDict[bytes, tuple[dict[str, Array], int, bool]]
        self._entries = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> dict[str, Array] | None:
        """Returns an answer, if there is one.

        Args:
          key: of `key_of`.

        Returns:
          The outputs, which may not be changed; None if they are not known.
        """
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries[key] = (entry[0], entry[1], True)
        return entry[0]

    def put(self, key: bytes, outputs: Mapping[str, Array]) -> None:
        """Keeps an answer, and evicts others if they are too many.

        Args:
          key: of `key_of`.
          outputs: by name; they are copied if they are parts of a larger array.
        """
        size = _nbytes(outputs)
        if size > self._limit or key in self._entries:
            return
        while self.nbytes + size > self._limit:
            oldest, (kept, nbytes, again) = self._entries.popitem(last=False)
            if again:
                self._entries[oldest] = (kept, nbytes, False)
            else:
                self.nbytes -= nbytes
        # A view would keep the whole batch in memory.
        own = {k: v if v.base is None else v.copy() for k, v in outputs.items()}
        self._entries[key] = (own, size, False)
        self.nbytes += size
