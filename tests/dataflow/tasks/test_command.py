"""The command of a task: its options and its exit status."""

from __future__ import annotations

import pytest

from fxflow.dataflow.tasks import command


def test_wrong_options_end_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--index", "-1", "--address", "/tmp/a"])
    assert ended.value.code == 2
    assert "--index is a number from 0, got -1" in capsys.readouterr().err


def test_an_address_that_is_not_one_ends_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for address, why in (
        ("/nonexistent/folder/a", "cannot listen at /nonexistent"),
        ("10.0.0.1:7000", "needs keys"),
    ):
        assert command.main(["--index", "0", "--address", address]) == 1
        assert why in capsys.readouterr().err
