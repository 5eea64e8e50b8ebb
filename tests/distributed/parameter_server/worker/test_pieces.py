from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import optim, tree
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.distributed.parameter_server import (
    LocalServers,
    bsp,
    parameter_server,
    place,
    tensors_of,
)
from fxflow.distributed.parameter_server.worker.pieces import Cutter, recut
from fxflow.errors import ArgumentError

TENSORS = {
    "number": np.float32(3.0),
    "small": np.arange(5, dtype=np.float32),
    "table": np.arange(1200, dtype=np.float32).reshape(300, 4),
    "empty": np.zeros((0, 3), np.float32),
}


@pytest.mark.parametrize("servers", [1, 2, 7])
def test_join_inverts_cut(servers: int) -> None:
    plan = place(tensors_of(TENSORS), servers, split_above=100)
    cutter = Cutter(plan)
    parts = cutter.cut(TENSORS)
    assert len(parts) == servers
    assert sum(part.size for served in parts for part in served) == 1206
    for names in cutter.names:
        assert names == sorted(names)
    joined = cutter.join(parts)
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(joined[name], value)


# -- a snapshot for another number of servers ------------------------------------------

# "w" is large enough to be cut.
PARAMS = {
    "b": np.zeros((), np.float32),
    "v": np.ones(5, np.float32),
    "w": np.linspace(0, 1, 1200 * 512, dtype=np.float32).reshape(1200, 512),
}
TYPES = {n: ShapeDtypeStruct(x.shape, x.dtype) for n, x in PARAMS.items()}


def cutter_of(servers: int) -> Cutter:
    return Cutter(place(tensors_of(PARAMS), servers))


def states_of(optimizer: Any, servers: int) -> list[dict[str, Any]]:
    """Returns each server's state in a snapshot after a step."""
    cutter, found = cutter_of(servers), []
    for names, parts in zip(cutter.names, cutter.cut(PARAMS), strict=True):
        pieces = dict(zip(names, parts, strict=True))
        _, state = optimizer.update(pieces, optimizer.init(pieces), pieces)
        leaves = [np.asarray(leaf) for leaf in tree.leaves(state)]
        found.append({"keys": [""] * len(leaves), "optimizer": leaves})
    return found


def same(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> bool:
    return all(
        a["keys"] == b["keys"]
        and all(map(np.array_equal, a["optimizer"], b["optimizer"]))
        for a, b in zip(one, two, strict=True)
    )


@pytest.mark.parametrize(("old", "new"), [(1, 3), (3, 1), (2, 3), (3, 2), (4, 5)])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_recut_states_equal_those_of_the_new_number_of_servers(
    name: str, old: int, new: int
) -> None:
    rule = optim.adam(0.1) if name == "adam" else optim.sgd(0.1, momentum=0.9)
    assert any("[" in n for names in cutter_of(max(old, new)).names for n in names)
    before, after = cutter_of(old), cutter_of(new)
    found = recut(states_of(rule, old), rule.init, before, after, TYPES)
    assert same(found, states_of(rule, new))


def test_recut_takes_the_largest_of_different_counts() -> None:
    rule = optim.adam(0.1)
    given = states_of(rule, 2)
    given[1]["optimizer"][0] = np.int32(7)
    found = recut(given, rule.init, cutter_of(2), cutter_of(3), TYPES)
    assert [int(server["optimizer"][0]) for server in found] == [7, 7, 7]


class Columns:
    """Keeps a sum over the rows of each piece, which cannot be cut by rows."""

    def init(self, params: Any) -> Any:
        return {name: p.sum(0) if p.ndim else p for name, p in params.items()}

    def update(self, gradients: Any, state: Any, params: Any) -> Any:
        return gradients, state


def test_state_that_is_not_by_rows_cannot_be_cut() -> None:
    rule = Columns()
    assert same(
        recut(states_of(rule, 2), rule.init, cutter_of(2), cutter_of(2), TYPES),
        states_of(rule, 2),
    )
    with pytest.raises(ArgumentError, match=r"of 'w' .* is not by rows"):
        recut(states_of(rule, 2), rule.init, cutter_of(2), cutter_of(3), TYPES)


def test_states_of_another_optimizer_are_rejected() -> None:
    given = states_of(optim.sgd(0.1), 2)
    with pytest.raises(ArgumentError, match="another optimizer"):
        recut(given, optim.adam(0.1).init, cutter_of(2), cutter_of(3), TYPES)


def test_a_run_continues_with_another_number_of_servers() -> None:
    def loss(params: Any, x: Any) -> Any:
        return fnp.sum((params["w"] - x) ** 2) + fnp.sum(params["v"]) + params["b"]

    def run(servers: int, snapshot: Any = None) -> tuple[Any, Any]:
        local = LocalServers(servers)
        server = parameter_server(
            loss, optim.adam(0.1), consistency=bsp(), cluster=local.cluster
        )
        state = server.init(PARAMS, snapshot)
        for _ in range(2):
            state, _ = server.step(state, np.float32(1))
        found = tree.map(np.asarray, server.params(state)), server.snapshot()
        server.close()
        local.close()
        return found

    _, snapshot = run(2)
    expected, _ = run(2, snapshot)
    params, after = run(3, snapshot)
    assert len(after["servers"]) == 3
    for name, value in expected.items():
        np.testing.assert_allclose(params[name], value, rtol=1e-6, atol=1e-7)
    begun, _ = run(2)
    assert not np.allclose(begun["w"], expected["w"], atol=1e-3)
