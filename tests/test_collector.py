"""The garbage collector rests while fxflow is imported, and no longer."""

from __future__ import annotations

import gc

from fxflow._collector import Paused


def test_resumes_as_it_was() -> None:
    assert gc.isenabled()
    gc.unfreeze()  # as in a process that runs no tests
    try:
        paused = Paused()
        assert not gc.isenabled()
        paused.resume()
        assert gc.isenabled()
        assert not gc.get_freeze_count()
    finally:
        gc.freeze()
    gc.disable()
    try:
        Paused().resume()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_resumes_when_it_goes() -> None:
    paused = Paused()
    del paused
    assert gc.isenabled()
