"""Ratios of bytes."""

from fxflow.distributed.parameter_server import TrafficReport


def test_ratios_compare_encoded_with_exact_bytes() -> None:
    report = TrafficReport({}, {}, "int8", "bf16", 100, 25, 50)
    assert report.push_ratio == 4.0 and report.pull_ratio == 2.0
    empty = report._replace(push_bytes=0, pull_bytes=0)
    assert empty.push_ratio == empty.pull_ratio == 1.0
