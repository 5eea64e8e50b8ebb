"""Differences between signatures, in words."""

import threading
import warnings

import numpy as np
import pytest

from fxflow import config, jit
from fxflow.core.arrays.aval import Aval
from fxflow.errors import RetraceWarning
from fxflow.transforms.explain import Signature, explain_retrace


def signature(*avals, static=None, labels=None, context=()):
    labels = labels or [f"x{i}" for i in range(len(avals))]
    return Signature(lambda: labels, tuple(avals), len(avals), static or {}, context)


def test_differences():
    f3, f4 = (Aval((n,), np.dtype("f4")) for n in (3, 4))
    assert signature(f4).differences(signature(f3)) == [
        "argument x0 changed from f32[3] to f32[4]"
    ]
    assert "argument x1 is new: f32[3]" in signature(f3, f3).differences(signature(f3))
    assert "argument x1 is missing" in signature(f3).differences(signature(f3, f3))
    assert signature(static={"n": 2}).differences(signature(static={"n": 1})) == [
        "static argument n changed from 1 to 2"
    ]
    assert signature(static={"n": -0.0}).differences(signature(static={"n": 0.0})) == [
        "static argument n changed from 0.0 to -0.0"
    ]
    assert signature(f3).differences(signature(f3)) == []
    assert signature(f3, context=1).differences(signature(f3)) != []


@pytest.mark.parametrize(
    "ordinal", ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th"]
)
def test_ordinals(ordinal):
    explaining = config.override(explain_retraces=True)
    with explaining, pytest.warns(RetraceWarning, match=f"for the {ordinal} time"):
        explain_retrace("f", signature(), [signature()], int(ordinal[:-2]))


def test_the_nearest_known_signature_explains():
    f3, f4, f5 = (Aval((n,), np.dtype("f4")) for n in (3, 4, 5))
    known = [signature(f3, f3), signature(f4, f5), signature(f5, f3)]

    def said(new):
        explaining = config.override(explain_retraces=True)
        with explaining, pytest.warns(RetraceWarning) as caught:
            explain_retrace("f", new, known, len(known) + 1)
        return str(caught[0].message).partition("time: ")[2]

    # Two arguments differ from the first signature, one from the second.
    assert said(signature(f4, f4)) == "argument x1 changed from f32[5] to f32[4]"
    # As near to the first as to the last: the last.
    assert said(signature(f4, f3)) == "argument x0 changed from f32[5] to f32[4]"


def test_frequent_traces_are_warned_of_ever_more_rarely():
    f3 = signature(Aval((3,), np.dtype("f4")))

    def warns(count):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            explain_retrace("f", signature(), [f3], count)
        return bool(caught)

    assert [n for n in range(1, 200) if warns(n)] == [10, 20, 40, 80, 160]
    with config.override(explain_retraces=True):
        assert all(warns(n) for n in (2, 11, 12, 21))


def test_retraces_in_several_threads_are_explained():
    jitted = jit(lambda x, n: x * n, static_argnums=1)
    errors, together = [], threading.Barrier(4)

    def run(start):
        together.wait()
        try:
            for n in range(start, start + 30):
                jitted.trace(1.0, n)
        except Exception as error:
            errors.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        config.explain_retraces = True
        try:
            threads = [threading.Thread(target=run, args=(1000 * i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            config.explain_retraces = False
    assert errors == []
    assert len(jitted._caches.signatures) >= 100
