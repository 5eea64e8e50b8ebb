"""Parts of arrays on this process's devices."""

import numpy as np

import fxflow
from fxflow import NamedSharding, P
from fxflow.core.spmd.parts import held_parts, join_parts


def test_each_part_is_returned_once_and_they_make_up_the_array() -> None:
    mesh = fxflow.make_mesh((2, 2), ("a", "b"))
    whole = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    for spec, count in ((P("a"), 2), (P(("a", "b")), 4), (P(), 1)):
        array = fxflow.device_put(whole, NamedSharding(mesh, spec))
        for first_replicas in (False, True):
            parts = held_parts(array, first_replicas=first_replicas)
            assert len(parts) == count
            found = join_parts([(i, np.asarray(x)) for i, x in parts], (4, 3))
            np.testing.assert_array_equal(found, whole)


def test_a_part_that_is_the_whole_is_not_copied() -> None:
    whole = np.ones((2, 3))
    assert np.shares_memory(join_parts([((), whole)], (2, 3)), whole)
