"""Metrics are written in Prometheus's text format."""

from fxflow.distributed.metrics import Registry


def test_a_family_is_written_with_its_labels_escaped() -> None:
    registry = Registry("a")
    count = registry.counter("b", "What.", "model", "status")
    count.labels('x"\\\n', 200).inc()
    count.labels('x"\\\n', "200").inc(2**60)
    assert registry.exposition() == (
        "# HELP a_b_total What.\n# TYPE a_b_total counter\n"
        'a_b_total{model="x\\"\\\\\\n",status="200"} 1152921504606846976\n'
    )


def test_gauges_are_set_and_cleared() -> None:
    registry = Registry("a")
    gauge = registry.gauge("b", "What.")
    gauge.labels().set(0.25)
    assert "\na_b 0.25\n" in registry.exposition()
    gauge.labels().set(float("inf"))
    assert "\na_b +Inf\n" in registry.exposition()
    gauge.clear()
    assert registry.exposition() == "# HELP a_b What.\n# TYPE a_b gauge\n"


def test_buckets_are_cumulative_and_include_their_upper_ends() -> None:
    registry = Registry("a")
    series = registry.histogram("b", "What.", "k", bounds=(0.5, 1)).labels("v")
    for value, times in ((0.5, 2), (0.75, 1), (1, 1), (7, 1)):
        series.observe(value, times)
    assert series.counts == [2, 2, 1]
    assert registry.exposition().splitlines()[2:] == [
        'a_b_bucket{k="v",le="0.5"} 2',
        'a_b_bucket{k="v",le="1"} 4',
        'a_b_bucket{k="v",le="+Inf"} 5',
        'a_b_sum{k="v"} 9.75',
        'a_b_count{k="v"} 5',
    ]
