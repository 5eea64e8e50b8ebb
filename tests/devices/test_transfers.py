"""The transfer guard; `transforms/test_debugging` tests the copies that it guards."""

import pytest

from fxflow._config import config
from fxflow.devices import transfers
from fxflow.errors import TransferError


@pytest.mark.parametrize(
    ("level", "implicit", "explicit"),
    [
        ("allow", None, None),
        ("log", "log", None),
        ("disallow", "raise", None),
        ("log_explicit", "log", "log"),
        ("disallow_explicit", "raise", "raise"),
    ],
)
def test_levels(level, implicit, explicit, caplog):
    def result(call):
        caplog.clear()
        try:
            call()
        except TransferError:
            return "raise"
        return "log" if caplog.records else None

    def copy():
        transfers.guard(transfers.TO_HOST, "f32[3]", "the host")

    with config.override(transfer_guard="allow", transfer_guard_device_to_host=level):
        assert result(copy) == implicit
        assert result(lambda: transfers.explicitly(copy)) == explicit


def test_one_direction_has_its_own_level():
    with config.override(
        transfer_guard="disallow", transfer_guard_device_to_device="allow"
    ):
        transfers.guard(transfers.BETWEEN, "f32[3]", "cpu:1")
        with pytest.raises(TransferError, match="device_get"):
            transfers.guard(transfers.TO_HOST, "f32[3]", "the host")
    assert transfers.on
