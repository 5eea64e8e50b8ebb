"""Training with workers and servers in threads of one process."""

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, tree
from fxflow.distributed import sharded_optimizer
from fxflow.distributed.compression import int8
from fxflow.distributed.parameter_server import (
    Consistency,
    LocalServers,
    ParameterServer,
    TableSpec,
    WorkerState,
    asynchronous,
    backup,
    bsp,
    elastic_averaging,
    local_sgd,
    parameter_server,
    softsync,
    ssp,
)
from fxflow.errors import (
    ArgumentError,
    DistributedError,
    DtypeError,
    NonFiniteError,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 6)).astype(np.float32)
Y = (X @ np.arange(6) * 0.1).astype(np.float32)
PARAMS = {"b": np.zeros((), np.float32), "w": np.zeros(6, np.float32)}
RULES = [
    bsp(),
    ssp(1),
    asynchronous(),
    asynchronous(compensation=0.1),
    backup(1, 1),
    softsync(1),
    local_sgd(3),
    elastic_averaging(3, 0.4),
]


def loss(params: Any, batch: Any) -> Any:
    x, y = batch
    return fnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def part(worker: int, workers: int) -> Any:
    return X[worker::workers], Y[worker::workers]


def together(
    consistency: Consistency,
    work: Callable[[ParameterServer, int], Any],
    workers: int = 2,
    servers: int = 2,
    known: bool = False,
    rate: float = 0.1,
    **options: Any,
) -> list[Any]:
    """Runs workers concurrently; `known`: they know their number. Returns results."""
    local = LocalServers(servers)
    count = workers if known else 0
    found: list[Any] = [None] * workers

    def run(i: int) -> None:
        server = parameter_server(
            loss,
            optim.sgd(rate),
            consistency=consistency,
            cluster=dataclasses.replace(local.cluster, index=i, workers=count),
            deadline=30,
            **options,
        )
        try:
            found[i] = work(server, i)
        except Exception as error:
            found[i] = error
        finally:
            server.close()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    local.close()
    for result in found:
        if isinstance(result, Exception):
            raise result
    return found


def steps(count: int, workers: int = 2) -> Callable[[ParameterServer, int], Any]:
    joined = threading.Barrier(workers, timeout=30)

    def work(server: ParameterServer, i: int) -> Any:
        state = server.init(PARAMS)
        joined.wait()  # otherwise, the first worker begins alone
        losses = []
        for _ in range(count):
            state, metrics = server.step(state, part(i, workers))
            losses.append(float(metrics.loss))
        return losses, fxflow.device_get(server.params(state))

    return work


def on_one_device(count: int) -> Any:
    params: Any = PARAMS
    for _ in range(count):
        gradient = fxflow.grad(loss)(params, (X, Y))
        params = tree.map(lambda p, g: p - 0.1 * g, params, gradient)
    return params


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_consistency_learns(rule: Consistency) -> None:
    # No worker waits for one that has finished.
    found = together(rule, steps(24))
    for losses, _ in found:
        assert losses[-1] < 0.5 * losses[0]


def test_bsp_equals_one_device() -> None:
    found = together(bsp(), steps(5))
    for _, params in found:
        tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6),
            params,
            fxflow.device_get(on_one_device(5)),
        )


@pytest.mark.parametrize("rule", [bsp(), backup(2, 0)], ids=str)
def test_rounds_begin_together(rule: Consistency) -> None:
    def work(server: ParameterServer, i: int) -> Any:
        time.sleep(i)  # time for many rounds, if the first worker did not wait
        state = server.init(PARAMS)
        for _ in range(3):
            state, _ = server.step(state, part(i, 2))
        return fxflow.device_get(server.params(state))

    for params in together(rule, work, known=True):
        tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6),
            params,
            fxflow.device_get(on_one_device(3)),
        )


def test_one_worker_with_its_own_server_equals_one_device() -> None:
    server = parameter_server(loss, optim.sgd(0.1), consistency=asynchronous())
    state = server.init(PARAMS)
    for _ in range(4):
        state, _ = server.step(state, (X, Y))
    tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6),
        fxflow.device_get(server.params(state)),
        fxflow.device_get(on_one_device(4)),
    )
    server.close()
    server.close()


@pytest.mark.parametrize("exchange", ["bf16", "int8"])
def test_coded_gradients_train(exchange: str) -> None:
    ((_, found),) = together(asynchronous(), steps(12, 1), 1, exchange=exchange)
    expected = fxflow.device_get(on_one_device(12))
    np.testing.assert_allclose(found["w"], expected["w"], atol=2e-3)


@pytest.mark.parametrize(
    ("rule", "pull"), [(asynchronous(), "bf16"), (local_sgd(1), "f16")], ids=str
)
def test_errors_of_pulls_in_16_bits_do_not_accumulate(
    rule: Consistency, pull: str
) -> None:
    # After 150 steps, the error is that of one rounding.
    ((_, found),) = together(rule, steps(150, 1), 1, pull=pull)
    np.testing.assert_allclose(found["w"], np.arange(6) * 0.1, atol=4e-3)


@pytest.mark.parametrize("rule", [bsp(), asynchronous(), local_sgd(1)], ids=str)
def test_parameters_keep_64_bits(rule: Consistency) -> None:
    """`config.x64` is off, even in a run that continues from a snapshot."""
    wide = {"b": fnp.array(1 / 3, "float64"), "w": fnp.full(6, 0.1, "float64")}
    batch = fnp.asarray(X, "float64"), fnp.asarray(Y, "float64")

    def run(count: int, snapshot: Any = None) -> Any:
        def work(server: ParameterServer, i: int) -> Any:
            state = server.init(wide, snapshot)
            for _ in range(count):
                state, _ = server.step(state, batch)
            return fxflow.device_get(server.params(state)), server.snapshot()

        return together(rule, work, workers=1, rate=0.125)[0]

    expected = wide
    for _ in range(4):
        gradient = fxflow.grad(loss)(expected, batch)
        expected = tree.map(lambda p, g: p - 0.125 * g, expected, gradient)
    _, snapshot = run(2)
    # The last step of a worker that pushes changes is only in its own parameters.
    for found in (run(4)[0], run(2, snapshot)[0]):
        for name, value in found.items():
            assert value.dtype == np.float64
            np.testing.assert_allclose(value, expected[name], rtol=1e-13)


def test_the_traffic_of_filters_is_counted() -> None:
    wide = {"b": np.zeros((), np.float32), "w": np.zeros(64, np.float32)}

    def square(params: Any, batch: Any) -> Any:
        return fnp.sum((params["w"] - batch) ** 2) + params["b"] ** 2

    server = parameter_server(
        square,
        optim.sgd(0.1),
        consistency=asynchronous(),
        exchange="int8",
        pull="f16",
    )
    with pytest.raises(ArgumentError, match="call init"):
        server.traffic()
    state = server.init(wide)
    for _ in range(3):
        state, _ = server.step(state, 1.0)
    server.params(state)
    traffic = server.traffic()
    assert (traffic.exchange, traffic.pull) == ("int8(256)", "f16()")
    assert traffic.exact_bytes == 65 * 4
    assert traffic.push_bytes == 64 + 4 + 4
    assert traffic.pull_bytes == 65 * 2
    assert traffic.pull_ratio == 2
    assert traffic.push_ratio == pytest.approx(65 * 4 / 72)
    assert traffic.sent["push"] > 3 * 72
    assert traffic.received["params"] > 3 * 130
    server.close()


def test_using_a_state_twice_is_an_error() -> None:
    server = parameter_server(loss, optim.sgd(0.1), consistency=asynchronous())
    with pytest.raises(ArgumentError, match="call init"):
        server.step(WorkerState(0, None, []), (X, Y))
    first = server.init(PARAMS)
    server.step(first, (X, Y))
    with pytest.raises(ArgumentError, match="after step 0, but step 1"):
        server.step(first, (X, Y))
    server.close()


def test_a_bulk_synchronous_step_equals_that_of_a_sharded_optimizer() -> None:
    sharded = sharded_optimizer(loss, optim.sgd(0.1))
    state, _ = sharded.step(sharded.init(PARAMS), (X, Y))
    expected = np.asarray(sharded.params(state)["w"])
    server = parameter_server(loss, optim.sgd(0.1), consistency=bsp())
    updated, _ = server.step(server.init(PARAMS), (X, Y))
    found = np.asarray(server.params(updated)["w"])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    server.close()


def test_parameters_without_a_gradient_are_named_before_the_run_begins() -> None:
    server = parameter_server(loss, optim.sgd(0.1), consistency=asynchronous())
    more = {"steps": [np.zeros(2, np.int32)]}
    with pytest.raises(DtypeError, match=r"parameter 'steps/0' is i32\[2\], which has"):
        server.init({**PARAMS, **more})
    server.close()


def test_non_finite_gradients_are_rejected_skipped_or_applied() -> None:
    bad = (X, Y * np.float32(np.inf))

    def rejected(server: ParameterServer, i: int) -> None:
        state = server.init(PARAMS)
        with pytest.raises(NonFiniteError, match=r"step 0 is not finite \(loss inf\)"):
            server.step(state, bad)
        state, _ = server.step(state, (X, Y))
        assert np.isfinite(server.params(state)["w"]).all()

    def skipped(server: ParameterServer, i: int) -> None:
        state, _ = server.step(server.init(PARAMS), bad)
        np.testing.assert_array_equal(server.params(state)["w"], PARAMS["w"])
        assert (server.skipped, server.non_finite) == (1, 1)

    def applied(server: ParameterServer, i: int) -> None:
        state, _ = server.step(server.init(PARAMS), bad)
        assert not np.isfinite(server.params(state)["w"]).any()
        assert (server.skipped, server.non_finite) == (0, 1)

    together(asynchronous(), rejected, 1)
    together(asynchronous(), skipped, 1, non_finite="skip")
    together(asynchronous(), applied, 1, non_finite="apply")


def test_another_model_is_rejected_and_other_workers_continue() -> None:
    begun = threading.Event()

    def work(server: ParameterServer, i: int) -> Any:
        if i == 0:
            state = server.init(PARAMS)
            begun.set()
            for _ in range(10):
                state, metrics = server.step(state, (X, Y))
            return float(metrics.loss)
        begun.wait(30)
        with pytest.raises(DistributedError, match="another model than the run"):
            server.init({**PARAMS, "w": np.zeros(7, np.float32)})
        return None

    assert together(asynchronous(), work)[0] < 1


def test_init_accepts_parameters_of_another_structure() -> None:
    def distance(params: dict[str, Any], batch: Any) -> Any:
        return sum(fnp.sum((x - batch) ** 2) for x in params.values())

    server = parameter_server(distance, optim.sgd(0.5), consistency=asynchronous())
    for params in ({"w": [0.0], "v": [1.0]}, {"a": [0.0], "b": [1.0]}, {"c": [[2.0]]}):
        given = {name: np.array(value, np.float32) for name, value in params.items()}
        state = server.init(given)
        assert {n: x.tolist() for n, x in server.params(state).items()} == params
        state, _ = server.step(state, 5.0)
        fives = {name: np.full_like(x, 5).tolist() for name, x in given.items()}
        assert {n: x.tolist() for n, x in server.params(state).items()} == fives
    server.close()


def test_an_error_names_an_absent_server() -> None:
    pytest.importorskip("zmq")
    server = parameter_server(
        loss,
        optim.sgd(0.1),
        consistency=asynchronous(),
        cluster={"ps": ["127.0.0.1:9"]},
        deadline=0.5,
    )
    with pytest.raises(DistributedError, match=r"server 0 at .*127.0.0.1:9.*0\.5 s"):
        server.step(server.init(PARAMS), (X, Y))
    server.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency": bsp(), "pull": "f8"}, "pull must be 'f32', 'bf16' or 'f16'"),
        ({"consistency": "bsp"}, r"consistency must be bsp\(\).*got 'bsp'"),
        ({"consistency": bsp(), "exchange": "f8"}, "exchange must be 'f32'"),
        ({"consistency": bsp(), "exchange": int8(rounding="stochastic")}, "key"),
        ({"consistency": bsp(), "non_finite": "no"}, "non_finite must be one of"),
        ({"consistency": bsp(), "cluster": {"worker": []}}, "names its servers"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1", "a:1"]}}, "'a:1' twice"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1", ""]}}, "a gap"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1"], "boss": []}}, "'boss'"),
        ({"consistency": bsp(), "cluster": "/nowhere.json"}, "cannot be read"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_invalid_arguments_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parameter_server(loss, optim.sgd(0.1), **options)


@pytest.mark.slow
def test_a_worker_goes_on_after_a_rejected_push(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table refuses rows that are not finite; another worker is not affected."""
    local = LocalServers(2)

    def server_of(rejected: Any) -> Any:
        return parameter_server(
            lambda w, rows, x: fnp.sum(rows["t"] * x) + w,
            optim.sgd(1.0),
            consistency=asynchronous(rate="fixed"),
            cluster=local.cluster,
            tables=[TableSpec("t", 1, optim.sgd(1.0), nn.initializers.zeros)],
            non_finite="apply",
            rejected=rejected,
            deadline=20,
        )

    server = server_of("skip")
    state = server.init(np.float32(0))
    for x in (1.0, np.inf, 1.0, np.nan, 1.0):
        state, _ = server.step(state, np.float32(x), ids={"t": [4]})
    server.params(state)
    assert server.rejected == 2
    # The other shard, which has no rows of the pushes, has applied all five.
    assert server.rows({"t": [4]})["t"].tolist() == [[-3.0]]
    counts = [shard.counts for s in local.servers for shard in s.shards.values()]
    assert sum(c.dropped.get("rejected", 0) for c in counts) == 2
    told = capsys.readouterr().err
    assert told.count("leaves out push 2") == 1 and "inf or nan" in told
    server.close()

    strict = server_of("error")
    state = strict.init(np.float32(0))
    state, _ = strict.step(state, np.float32(np.inf), ids={"t": [4]})
    with pytest.raises(DistributedError, match="inf or nan"):
        strict.params(state)
    strict._run.client.seconds = 0.1
    strict.close()
    local.close()


def test_the_policy_for_rejected_pushes_is_checked() -> None:
    with pytest.raises(ArgumentError, match="rejected must be one of 'error', 'skip'"):
        parameter_server(
            lambda w, x: w, optim.sgd(1.0), consistency=bsp(), rejected="drop"
        )
