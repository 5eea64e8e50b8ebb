"""Caches predictions by a hash of the request's inputs.

The cache is bounded in bytes and evicts by CLOCK: an entry that was hit since the hand
last passed is spared once. Each loaded version of a model has its own cache.

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
#: Approximate bytes of Python objects in an entry.
_ENTRY = 500


def key_of(inputs: Iterable[Array]) -> bytes:
    """Returns the cache key of a request's inputs.

    Args:
      inputs: arrays, in order.

    Returns:
      A digest of the inputs' dtypes, shapes and bytes.

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
    """Predictions by key, in at most `limit` bytes.

    Args:
      limit: bytes; 0 disables the cache.

    Attributes:
      hits, misses: number of calls of `get` that found an entry, and that did not.
      nbytes: bytes of all entries.

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
        #: In the order in which the hand visits them: outputs, bytes, referenced.
        self._entries: OrderedDict[bytes, tuple[dict[str, Array], int, bool]]
        self._entries = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> dict[str, Array] | None:
        """Returns the outputs cached under a key.

        Args:
          key: from `key_of`.

        Returns:
          The outputs, which must not be changed; None on a miss.
        """
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries[key] = (entry[0], entry[1], True)
        return entry[0]

    def put(self, key: bytes, outputs: Mapping[str, Array]) -> None:
        """Adds an entry, and evicts others if the limit is exceeded.

        Args:
          key: from `key_of`.
          outputs: arrays by name; views are copied.
        """
        size = _nbytes(outputs)
        if size > self._limit or key in self._entries:
            return
        while self.nbytes + size > self._limit:
            oldest, (kept, nbytes, referenced) = self._entries.popitem(last=False)
            if referenced:
                self._entries[oldest] = (kept, nbytes, False)
            else:
                self.nbytes -= nbytes
        # A view would keep the whole batch in memory.
        own = {k: v if v.base is None else v.copy() for k, v in outputs.items()}
        self._entries[key] = (own, size, False)
        self.nbytes += size
