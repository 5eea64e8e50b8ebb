"""Tables on servers, as a worker uses them."""

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    TableSpec,
    asynchronous,
    bsp,
    local_sgd,
    parameter_server,
)
from fxflow.errors import ArgumentError, DistributedError, OutOfRangeError

pytest.importorskip("zmq")

FAR = 10**15


def words(**options: Any) -> TableSpec:
    return TableSpec("words", 3, optim.sgd(0.5), nn.initializers.ones, **options)


def loss(params: Any, rows: Any, batch: Any) -> Any:
    return fnp.sum(rows["words"] * batch[..., None]) * params


def make(servers: int = 2, **options: Any) -> Any:
    local = LocalServers(servers)
    options = {"consistency": asynchronous(), "tables": [words()], **options}
    server = parameter_server(
        loss, optim.sgd(0.0), cluster=local.cluster, deadline=20, **options
    )
    return local, server


def test_rows_keep_64_bits() -> None:
    """`config.x64` is off."""
    third = lambda key, shape, dtype: fnp.full(shape, 1 / 3, dtype)
    table = TableSpec("words", 3, optim.sgd(0.125), third, dtype="float64")
    local, server = make(tables=[table])
    state = server.init(fnp.ones((), "float64"))
    batch = fnp.array([0.1, 0.2], "float64")
    for _ in range(2):
        state, metrics = server.step(state, batch, ids={"words": np.array([1, FAR])})
    rows = server.rows({"words": np.array([1, FAR])})["words"]
    expected = 1 / 3 - np.array([0.1, 0.2]) * 2 * 0.125
    assert rows.dtype == np.float64 and metrics.loss.dtype == np.float64
    np.testing.assert_allclose(rows, np.repeat(expected[:, None], 3, 1), rtol=1e-14)
    server.close()
    local.close()


def test_only_rows_of_the_batch_are_updated() -> None:
    local, server = make()
    state = server.init(np.float32(1.0))
    ids = np.array([[1, 4], [FAR, 4]])
    batch = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    state, metrics = server.step(state, batch, ids={"words": ids})
    assert float(metrics.loss) == 30.0
    # The gradients of a repeated id are added.
    expected = {1: 0.5, 4: 1 - 0.5 * 6, FAR: 1 - 0.5 * 3, 7: 1.0}
    found = server.rows({"words": list(expected)})["words"]
    np.testing.assert_allclose(found[:, 0], list(expected.values()))
    state, metrics = server.step(state, batch, ids={"words": ids})
    assert float(metrics.loss) == pytest.approx(3 * (0.5 - 4 - 1.5 - 8))
    held = [len(s.shards[s.number].tables["words"]) for s in local.servers]
    assert held == [1 + 1, 2]  # 4 and FAR lie on server 0; 1 and 7 on server 1
    server.close()
    local.close()


def test_pulled_rows_are_reused_within_row_staleness() -> None:
    local, server = make(1, row_staleness=2)
    state = server.init(np.float32(1.0))
    losses = []
    for _ in range(4):
        ids = {"words": np.array([5])}
        state, metrics = server.step(state, np.ones(1, np.float32), ids=ids)
        losses.append(float(metrics.loss))
    # The row is pulled at steps 0 and 3; each step subtracts 0.5 from it.
    assert losses == [3.0, 3.0, 3.0, -1.5]
    server.close()
    local.close()


def test_rounds_update_rows() -> None:
    local, server = make(1, consistency=bsp())
    state = server.init(np.float32(1.0))
    ids = {"words": np.array([5])}
    state, _ = server.step(state, np.ones(1, np.float32), ids=ids)
    assert server.rows(ids)["words"].tolist() == [[0.5, 0.5, 0.5]]
    server.close()
    local.close()


def test_invalid_tables_and_ids_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="rows of tables are updated by servers"):
        make(1, consistency=local_sgd(2))[0].close()
    with pytest.raises(ArgumentError, match="two tables have the same name"):
        make(1, tables=[words(), words()])
    local, server = make(1)
    state = server.init(np.float32(1.0))
    with pytest.raises(ArgumentError, match=r"name the tables \['words'\], got \[\]"):
        server.step(state, np.ones(1, np.float32))
    with pytest.raises(DistributedError, match="there is no table 'verbs'"):
        server._client.rows([{"verbs": np.array([1])}])
    for wrong, kind, why in (
        ([-1, 2], OutOfRangeError, r"from 0 to 2\*\*63 - 1, got -1"),
        ([0.5], ArgumentError, "integers, got f64"),
    ):
        with pytest.raises(kind, match=f"table 'words': ids must be {why}"):
            server.step(state, np.ones(1, np.float32), ids={"words": np.array(wrong)})
    bad = np.full(1, np.nan, np.float32)
    with pytest.raises(Exception, match="not finite"):
        server.step(state, bad, ids={"words": np.array([1])})
    server.close()
    local.close()
