from fxflow.distributed.parameter_server.monitor import (
    Figures,
    ServerFigures,
    WorkerFigures,
    scalars,
)

COUNTS = {("dropped", "stale"): 3.0, ("staleness", "0"): 9.0}
RATES = {
    ("pushes", ""): 4.0,
    ("busy", "push"): 0.25,
    ("staleness", "0"): 3.0,
    ("staleness", "4"): 1.0,
    ("push", "int8(256)"): 100.0,
    ("received_bytes", "push"): 120.0,
}
SERVERS = [
    ServerFigures(0, "a:1", "", COUNTS, RATES, {"shards": {}}),
    ServerFigures(1, "b:1", "gone", {}, {}, {}),
]


def test_scalars() -> None:
    figures = Figures(2.0, SERVERS, [WorkerFigures("worker 0", 9, 2.5, 0.25)])
    assert scalars(figures, "ps") == {
        "ps/answering": 1,
        "ps/pushes_per_second": 4,
        "ps/updates_per_second": 0,
        "ps/bytes_in_per_second": 120,
        "ps/bytes_out_per_second": 0,
        "ps/load/0": 0.25,
        "ps/push/int8(256)": 100,
        "ps/staleness": 1,
        "ps/dropped/stale": 3,
        "ps/clock/worker 0": 9,
    }


def test_the_first_look_has_no_rates() -> None:
    once = SERVERS[0]._replace(rates={})
    assert scalars(Figures(0.0, [once], [])) == {
        "servers/answering": 1,
        "servers/staleness": 0,
        "servers/dropped/stale": 3,
    }
