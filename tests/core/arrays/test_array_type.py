"""Types with their places: interned, so that a call's key is made of identities."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.arrays.array_type import type_on
from fxflow.core.arrays.aval import Aval
from fxflow.devices import OutOfMemoryError, buffers, local_devices

AVAL = Aval((2, 3), np.dtype(np.float32))


def test_interned():
    assert type_on(AVAL) is type_on(AVAL)
    assert type_on(AVAL) is type_on(AVAL, buffers.default_placement(), False)
    assert type_on(AVAL) is not type_on(AVAL, committed=True)
    assert type_on(AVAL) is not type_on(AVAL.update(weak_type=True))


def test_parts():
    placement = buffers.placement(local_devices()[0])
    array_type = type_on(AVAL, placement, True)
    assert array_type.aval is AVAL
    assert array_type.placement is placement
    assert array_type.committed
    assert repr(array_type).startswith("f32[2,3]@")
    assert array_type.handler is array_type.handler


def test_more_than_the_machine_has_is_refused():
    with pytest.raises(MemoryError, match=r"^zeros: f32\[1099511627776\] takes"):
        fnp.zeros(2**40)
    with pytest.raises(OutOfMemoryError, match="takes"):
        fxflow.jit(lambda: fnp.zeros(2**40))()
    assert fxflow.eval_shape(lambda: fnp.zeros(2**40)).shape == (2**40,)
