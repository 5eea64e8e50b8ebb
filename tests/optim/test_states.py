"""Parts of states, by name."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim, tree
from fxflow.optim import states

PARAMS = {"w": fnp.ones((2, 3)), "b": fnp.ones(3)}


def test_get_and_set_by_name() -> None:
    tx = optim.chain(
        optim.clip(1.0), optim.inject_hyperparams(optim.adam)(0.1), optim.trace(0.9)
    )
    state = tx.init(PARAMS)
    get = optim.tree.get
    assert float(get(state, "learning_rate")) == pytest.approx(0.1)
    assert get(state, "mu").keys() == PARAMS.keys()
    assert get(state, "speed", 3) == 3
    with pytest.raises(KeyError, match="2 parts have the name 'count'"):
        get(state, "count")
    adams = lambda path, _: getattr(path[-1], "tuple_name", "") == "ScaleByAdamState"
    assert int(get(state, "count", filtering=adams)) == 0
    new = optim.tree.set(state, adams, count=7)
    assert [c for _, c in optim.tree.get_all_with_path(new, "count")][1] == 7
    assert optim.tree.set(state, learning_rate=2.0)[1].hyperparams["learning_rate"] == 2
    with pytest.raises(KeyError, match="no part of the name speed"):
        optim.tree.set(state, speed=1)


def test_paths_have_readable_text() -> None:
    state = optim.chain(optim.trace(0.9), optim.adam(0.1)).init(PARAMS)
    [(path, _)] = optim.tree.get_all_with_path(state, "nu")
    assert "".join(map(str, path)) == "[1][0]ScaleByAdamState.nu"
    assert path[-1] == states.NamedTupleKey("ScaleByAdamState", "nu")


@pytest.mark.parametrize(
    "tx",
    [
        optim.adamw(0.1),
        optim.lbfgs(),
        optim.masked(optim.adam(0.1), {"w": True, "b": False}),
        optim.multi_transform({"a": optim.sgd(0.1, 0.9)}, lambda params: "a"),
        optim.MultiSteps(optim.adam(0.1), 2),
    ],
)
def test_map_params_finds_the_parameters_leaves(tx) -> None:
    state = tx.init(PARAMS)
    masked = lambda x: isinstance(x, optim.MaskedNode)
    marked = optim.tree.map_params(
        tx,
        lambda x: x if masked(x) else -1,
        state,
        transform_non_params=lambda x: 5,
        is_leaf=masked,
    )
    found = set(tree.leaves(marked))
    assert -1 in found
    assert found <= {-1, 5}
