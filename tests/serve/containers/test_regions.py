"""Regions of shared memory."""

import os

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.regions import Region, aligned


def test_both_sides_can_grow_a_region() -> None:
    ours = Region(limit=1 << 22)
    theirs = Region(os.dup(ours.fd), limit=1 << 22)
    ours.view(10)[:] = b"0123456789"
    old = theirs.view(10)
    theirs.view(1 << 20)[-1:] = b"z"
    assert bytes(ours.view(1 << 20)[-1:]) == b"z"
    ours.view(1)[:] = b"x"
    assert bytes(old[:2]) == b"x1"  # an old view is the same memory
    ours.close()
    theirs.close()


def test_views_outlive_their_region() -> None:
    region = Region(limit=1 << 16)
    array = np.frombuffer(region.view(8), np.float64)
    region.close()
    array[...] = 3.0
    assert array[0] == 3.0


def test_a_region_does_not_exceed_its_limit() -> None:
    region = Region(limit=100)
    with pytest.raises(ServeError, match="need 101 bytes, and the limit is 100"):
        region.view(101)
    assert len(region.view(100)) == 100
    assert os.fstat(region.fd).st_size == 100
    region.close()


def test_offsets_are_rounded_up_to_64() -> None:
    assert [aligned(n) for n in (0, 1, 63, 64, 65)] == [0, 64, 64, 64, 128]
