import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.distributed.serialization import HostLeaf, to_host
from fxflow.distributed.snapshots import (
    Parts,
    StateServer,
    StateSnapshot,
    assemble,
    fetch,
)
from fxflow.errors import DistributedError


def test_a_whole_snapshot_holds_every_leaf() -> None:
    snapshot = StateSnapshot([fnp.arange(3), np.ones(2), 4])
    assert snapshot.holding(7) == {
        "step": 7,
        "kind": "held",
        "pieces": None,
        "sizes": [],
    }
    assert [leaf.data.tolist() for leaf in snapshot.whole()] == [[0, 1, 2], [1, 1], 4]
    assert snapshot.piece(0, [[1, 3]]).data.tolist() == [1, 2]


def test_a_snapshot_of_donated_arrays_is_not_intact() -> None:
    x = fnp.arange(3.0) + 1
    snapshot = StateSnapshot([x])
    assert snapshot.intact()
    fxflow.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert snapshot.intact() == (not x.is_deleted())


def test_parts_of_two_snapshots_make_a_whole() -> None:
    left = Parts((4, 2), [([[0, 2], [0, 2]], HostLeaf(np.zeros((2, 2))))])
    right = Parts((4, 2), [([[2, 4], [0, 2]], HostLeaf(np.ones((2, 2))))])
    small = HostLeaf(np.array(5))
    one, other = StateSnapshot([left, small]), StateSnapshot([right, small])
    holding = one.holding(3)
    assert holding["pieces"] == [[0, [[0, 2], [0, 2]]], [1, []]]
    assert holding["sizes"] == [8, 1]
    with pytest.raises(KeyError, match="only parts"):
        one.whole()
    with pytest.raises(KeyError, match="leaf 0 at"):
        one.piece(0, [[2, 4], [0, 2]])
    found = [
        (piece, snapshot.piece(*piece))
        for snapshot in (one, other)
        for piece in snapshot.holding(3)["pieces"]
    ]
    whole, five = assemble(found, 2)
    assert whole.data.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
    assert five.data == 5


def test_random_keys_are_assembled() -> None:
    keys = to_host(fxflow.random.split(fxflow.random.key(0), 4))
    parts = [
        ([0, [[a, a + 2]]], HostLeaf(keys.data[a : a + 2], keys.key)) for a in (0, 2)
    ]
    (found,) = assemble(parts, 1)
    assert found.key == keys.key
    np.testing.assert_array_equal(found.data, keys.data)


def test_snapshots_are_served() -> None:
    known = {(3, "held"): StateSnapshot([fnp.arange(4), np.ones(2)])}
    server = StateServer("127.0.0.1", "secret", lambda s, k: known[s, k])
    plan = {"step": 3, "kind": "held"}
    try:
        found = fetch(server.address, "secret", plan, None)
        assert [leaf.data.tolist() for leaf in found] == [[0, 1, 2, 3], [1, 1]]
        (piece,) = fetch(server.address, "secret", plan, [[0, [[1, 3]]]])
        assert piece.data.tolist() == [1, 2]
        with pytest.raises(DistributedError, match="does not have the state of step 4"):
            fetch(server.address, "secret", {**plan, "step": 4}, None)
        with pytest.raises(DistributedError, match="refused"):
            fetch(server.address, "other", plan, None)
    finally:
        server.close()
    with pytest.raises(DistributedError, match="no worker answers"):
        fetch(server.address, "secret", plan, None, 0.2)
