"""The public module; its functions are tested in `transforms/test_checkify`."""

import fxflow
from fxflow import checkify


def test_sets_of_checks_are_public():
    assert checkify.all_checks == checkify.automatic_checks | checkify.user_checks
    assert checkify.float_checks == checkify.nan_checks | checkify.div_checks
    assert all(issubclass(c, checkify.ErrorCategory) for c in checkify.all_checks)
    assert "checkify" in dir(fxflow)
