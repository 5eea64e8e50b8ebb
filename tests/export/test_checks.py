"""Custom calls are stable, allowed by the user, or refused."""

import pytest

from fxflow.errors import ExportError
from fxflow.export import DisabledSafetyCheck
from fxflow.export.checks import require_known_calls


def test_known_calls_pass():
    known = ["lapack_spotrf_ffi", "cusolver_geqrf_ffi", "Sharding", "Qr"]
    require_known_calls(known, [], "f")
    with pytest.raises(ExportError) as raised:
        require_known_calls([*known, "my_kernel"], [], "f")
    assert "my_kernel" in str(raised.value)
    assert not any(name in str(raised.value) for name in known)


def test_unknown_calls_must_be_allowed():
    with pytest.raises(ExportError, match="f calls 'my_kernel'"):
        require_known_calls(["my_kernel"], [], "f")
    with pytest.raises(ExportError, match="lapack_spotrf_ffi_2"):
        require_known_calls(["lapack_spotrf_ffi_2"], [], "f")
    require_known_calls(
        ["my_kernel"], [DisabledSafetyCheck.custom_call("my_kernel")], "f"
    )


def test_callbacks_into_python_cannot_be_allowed():
    target = "xla_ffi_python_cpu_callback"
    with pytest.raises(ExportError, match="calls back into Python"):
        require_known_calls([target], [DisabledSafetyCheck.custom_call(target)], "f")


def test_checks_are_values():
    check = DisabledSafetyCheck.custom_call("a:b")
    assert check.is_custom_call() == "a:b"
    assert check == DisabledSafetyCheck("custom_call:a:b") != "custom_call:a:b"
    assert len({check, DisabledSafetyCheck.custom_call("a:b")}) == 1
    assert DisabledSafetyCheck.platform().is_custom_call() is None
