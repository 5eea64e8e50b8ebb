"""A sharded optimizer trains as one device does with the whole batch."""

import json
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim
from fxflow.distributed.zero import Sharded, sharded_optimizer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.train import checkpoint, data, loop
from fxflow.train.checkpoint import Checkpointer
from tests.sweeps.sampling import sample

RNG = np.random.default_rng(0)
PARAMS = {
    "w1": RNG.standard_normal((5, 7)).astype(np.float32),
    "b1": np.zeros(7, np.float32),
    "w2": RNG.standard_normal((7, 3)).astype(np.float32),
    "scale": np.float32(1.5),
}
BATCH = (
    RNG.standard_normal((16, 5)).astype(np.float32),
    RNG.standard_normal((16, 3)).astype(np.float32),
)


def model(params, x):
    return params["scale"] * (fnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"])


def loss(params, batch):
    x, y = batch
    return fnp.mean((model(params, x) - y) ** 2)


def loss_and_aux(params, batch):
    out = model(params, batch[0])
    return loss(params, batch), {"positive": fnp.sum(out > 0), "rows": len(batch[0])}


def alone(optimizer, steps: int, function=loss):
    """Returns the parameters and losses of training on one device."""

    @fxflow.jit
    def step(params, memory):
        value, gradients = fxflow.value_and_grad(function)(params, BATCH)
        updates, memory = optimizer.update(gradients, memory, params)
        return optim.apply_updates(params, updates), memory, value

    params = fxflow.tree.map(fnp.asarray, PARAMS)
    memory, losses = optimizer.init(params), []
    for _ in range(steps):
        params, memory, value = step(params, memory)
        losses.append(float(value))
    return params, losses


def served(sharded, steps: int, batch=BATCH, params=PARAMS):
    """Returns the same for a sharded optimizer."""
    state, losses = sharded.init(params), []
    for _ in range(steps):
        state, metrics = sharded.step(state, batch)
        losses.append(float(metrics.loss))
    return sharded.params(state), losses


def mesh(count: int):
    return fxflow.make_mesh((count,), ("data",))


def assert_same(found, expected, tolerance: float = 1e-6) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=tolerance, atol=tolerance, err_msg=name
        )


def matrices_only(params):
    return fxflow.tree.map(lambda x: x.ndim > 1, params)


OPTIMIZERS = {
    "sgd": optim.sgd(0.1, momentum=0.9),
    "adam": optim.adam(1e-2),
    "clip adamw": optim.chain(
        optim.clip_by_global_norm(0.1), optim.adamw(1e-2, mask=matrices_only)
    ),
    "multi": optim.multi_transform(
        {
            "adam": optim.adam(1e-2),
            "clipped": optim.chain(optim.clip_by_global_norm(0.1), optim.sgd(0.1)),
            "frozen": optim.set_to_zero(),
        },
        {"w1": "adam", "b1": "clipped", "w2": "clipped", "scale": "frozen"},
    ),
}
MORE = {
    "lars": optim.lars(0.1),
    "lamb": optim.lamb(1e-2),
    "several steps": optim.MultiSteps(optim.adam(1e-2), 2),
    "if finite": optim.apply_if_finite(optim.adam(1e-2), 3),
    "rows": optim.chain(
        optim.adaptive_grad_clip(0.01),
        optim.centralize(),
        optim.clip_by_block_rms(0.01),
        optim.sgd(0.1),
    ),
    "noise": optim.noisy_sgd(0.1, seed=1),
    "schedule": optim.inject_hyperparams(optim.adam)(
        learning_rate=optim.linear_schedule(0.1, 0.01, 5)
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sharded_optimizers_equal_one_device(name: str) -> None:
    optimizer = OPTIMIZERS[name]
    expected, losses = alone(optimizer, 4)
    found, told = served(sharded_optimizer(loss, optimizer, mesh=mesh(4)), 4)
    assert_same(found, expected)
    np.testing.assert_allclose(told, losses, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample([*MORE], 3, of="optimizers"))
def test_third_party_optimizers_equal_one_device(name: str) -> None:
    expected, _ = alone(MORE[name], 4)
    found, _ = served(sharded_optimizer(loss, MORE[name], mesh=mesh(4)), 4)
    assert_same(found, expected)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_any_number_of_devices_gives_the_same_result(count: int) -> None:
    optimizer = optim.sgd(0.1, momentum=0.9)
    expected, _ = alone(optimizer, 2)
    found, _ = served(sharded_optimizer(loss, optimizer, mesh=mesh(count)), 2)
    assert_same(found, expected)


def test_the_state_is_sharded_and_donated() -> None:
    sharded = sharded_optimizer(loss, optim.adam(1e-2), mesh=mesh(4))
    state = sharded.init(PARAMS)
    assert isinstance(state.params["w1"], Sharded)
    assert state.params["w1"].shape == (5, 7)
    pieces = [s.data for s in state.params["w1"].flat.addressable_shards]
    assert [p.shape for p in pieces] == [(9,)] * 4  # 35 elements in pieces of 9
    assert np.array_equal(np.concatenate(pieces)[:35], PARAMS["w1"].ravel())
    memory = fxflow.tree.leaves(state.optimizer)
    held = sum(x.addressable_shards[0].data.size for x in memory if x.ndim)
    assert held == 2 * (9 + 2 + 6)  # Adam's two moments of w1, b1, w2
    new, _ = sharded.step(state, BATCH)
    assert state.params["w1"].flat.is_deleted()
    assert fxflow.tree.structure(new) == fxflow.tree.structure(state)
    types = [[x.aval for x in fxflow.tree.leaves(s)] for s in (state, new)]
    assert types[0] == types[1]
    # Padding stays zero.
    assert float(np.asarray(new.params["w1"].flat)[-1]) == 0.0
    assert_same(sharded.params(sharded.init(PARAMS)), PARAMS)


def test_the_state_moves_to_other_devices() -> None:
    """Two steps on 4 devices and two on 2 are four steps on one."""
    optimizer = optim.adam(1e-2)
    first, second = (
        sharded_optimizer(
            loss, optimizer, mesh=mesh(n), exchange="bf16" if n == 2 else "f32"
        )
        for n in (4, 2)
    )
    state = first.init(PARAMS)
    for _ in range(2):
        state, _ = first.step(state, BATCH)
    params, memory = fxflow.device_get(first.whole(state))
    assert params["w1"].shape == memory[0].mu["w1"].shape == (5, 7)
    state = second.shard(params, memory)
    for _ in range(2):
        state, _ = second.step(state, BATCH)
    assert_same(second.params(state), alone(optimizer, 4)[0], 2e-3)


def test_64_bit_states_keep_their_dtypes() -> None:
    """`config.x64` is off, and the result of `whole` becomes NumPy arrays."""
    sharded = sharded_optimizer(lambda p, b: fnp.sum(p * b), optim.sgd(0.5, 0.5))
    wide = fnp.array([1 / 3, 1e300], "float64")
    state, _ = sharded.step(sharded.init(wide), fnp.ones((8, 2), "float64"))
    before = fxflow.device_get(sharded.whole(state))
    after = fxflow.device_get(sharded.whole(sharded.shard(*before)))
    for x, y in zip(fxflow.tree.leaves(before), fxflow.tree.leaves(after)):
        assert x.dtype == y.dtype == np.float64 and x.tolist() == y.tolist()


def test_the_state_is_saved_and_restored(tmp_path: Path) -> None:
    """A resumed run is bitwise the same; then it continues on other devices."""
    sharded = sharded_optimizer(loss, optim.adam(1e-2), mesh=mesh(4), exchange="int8")
    through = loop.run(sharded.step, sharded.init(PARAMS), [BATCH] * 4).state
    with Checkpointer(tmp_path / "run", every=2) as checkpoints:
        for steps in (2, 4):  # the second continues where the first ended
            state = sharded.init(PARAMS)
            outcome = loop.run(
                sharded.step,
                state,
                data.indexed([BATCH] * 4),
                num_steps=steps,
                checkpointer=checkpoints,
            )
    pairs = zip(*map(fxflow.tree.leaves, (outcome.state, through)), strict=True)
    for found, expected in pairs:
        assert np.array_equal(found, expected)
        assert found.sharding == expected.sharding
    checkpoint.save(tmp_path / "whole", sharded.whole(through))
    other = sharded_optimizer(loss, optim.adam(1e-2), mesh=mesh(2))
    like = other.whole(other.init(PARAMS))
    moved = other.shard(*checkpoint.restore(tmp_path / "whole", like))
    assert_same(other.params(moved), sharded.params(through))


def test_aux_is_combined_and_sums_are_supported() -> None:
    def total(params, batch):
        value, aux = loss_and_aux(params, batch)
        return value * len(batch[0]) / 16, aux

    _, expected = loss_and_aux(PARAMS, BATCH)
    kinds = {"mean": (loss_and_aux, 4.0, 1 / 4), "sum": (total, 16, 1)}
    for combine, (function, rows, share) in kinds.items():
        sharded = sharded_optimizer(
            function, optim.sgd(0.1), mesh=mesh(4), has_aux=True, combine=combine
        )
        state, metrics = sharded.step(sharded.init(PARAMS), BATCH)
        assert float(metrics.loss) == pytest.approx(float(loss(PARAMS, BATCH)))
        assert float(metrics.aux["positive"]) == int(expected["positive"]) * share
        assert float(metrics.aux["rows"]) == rows
        assert_same(sharded.params(state), alone(optim.sgd(0.1), 1)[0])


@pytest.mark.parametrize("exchange", ["bf16", "int8"])
def test_encoded_gradients_converge_to_the_same_parameters(exchange: str) -> None:
    expected, losses = alone(optim.sgd(0.1), 40)
    sharded = sharded_optimizer(loss, optim.sgd(0.1), mesh=mesh(4), exchange=exchange)
    found, told = served(sharded, 40)
    assert told[-1] == pytest.approx(losses[-1], rel=5e-3)
    assert told != losses  # the gradients were encoded
    assert_same(found, expected, 2e-2)


def test_losses_use_shared_arguments_and_collectives() -> None:
    """Dropout has a key for each device; the loss has a mean over all devices."""

    def noisy(params, batch, key):
        x, y = batch
        key = fxflow.random.fold_in(key, lax.axis_index("data"))
        kept = fxflow.random.bernoulli(key, 0.5, x.shape)
        center = lax.pmean(fnp.mean(y, 0), "data")
        return fnp.mean((model(params, x * kept) - (y - center)) ** 2)

    sharded = sharded_optimizer(noisy, optim.sgd(0.1), mesh=mesh(4))

    def one(seed: int) -> float:
        key = fxflow.random.key(seed)
        return float(sharded.step(sharded.init(PARAMS), BATCH, key)[1].loss)

    assert one(0) == one(0) != one(1)


def test_the_compiler_handles_other_axes_of_the_mesh() -> None:
    both = fxflow.make_mesh((2, 2), ("data", "model"))
    expected, _ = alone(optim.adam(1e-2), 2)
    found, _ = served(sharded_optimizer(loss, optim.adam(1e-2), mesh=both), 2)
    assert_same(found, expected)


def test_the_default_is_the_current_mesh_or_all_devices() -> None:
    sharded = sharded_optimizer(loss, optim.sgd(0.1), axis_name="x")
    assert sharded.mesh.shape == {"x": fxflow.device_count()}
    with fxflow.set_mesh(fxflow.make_mesh((2,), ("x",))):
        assert sharded_optimizer(loss, optim.sgd(0.1), axis_name="x").mesh.size == 2
        assert (
            sharded_optimizer(loss, optim.sgd(0.1)).mesh.size == fxflow.device_count()
        )


def test_invalid_arguments_are_named() -> None:
    make = partial(sharded_optimizer, loss, optim.sgd(0.1))
    with pytest.raises(ArgumentError, match=r"exchange must be 'f32', .*'f8'"):
        make(exchange="f8")
    with pytest.raises(ArgumentError, match="combine must be 'mean' or 'sum'"):
        make(combine="max")
    with pytest.raises(ArgumentError, match="has no axis 'x': name one of 'data'"):
        make(mesh=mesh(2), axis_name="x")
    with pytest.raises(TypeError, match="sharded_optimizer"):
        sharded_optimizer(3, optim.sgd(0.1))
    sharded = make(mesh=mesh(4))
    with pytest.raises(ArgumentError, match="not an array"):
        sharded.init({"w": "text"})
    state = sharded.init(PARAMS)
    short = [x[:15] for x in BATCH]
    with pytest.raises(ShapeError, match=r"sharded_optimizer\.step.*batch\[0\] is f32"):
        sharded.step(state, short)
    assert "axis 'data'" in repr(sharded)


PROCESS = """
import json, sys
import numpy as np
import fxflow

fxflow.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
from tests.distributed.zero import test_optimizer as here

mine = 8 * fxflow.process_index()
batch = [x[mine : mine + 8] for x in here.BATCH]
for exchange in ("f32", "bf16", "int8"):
    sharded = here.sharded_optimizer(
        here.loss, here.OPTIMIZERS["clip adamw"], exchange=exchange
    )
    params, losses = here.served(sharded, 4, batch)
    whole = {name: np.asarray(x).tolist() for name, x in params.items()}
    print(json.dumps([sharded.mesh.size, whole, losses]), flush=True)
fxflow.distributed.shutdown()
"""


@pytest.mark.slow
def test_two_processes_train_as_one() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    root = Path(__file__).parents[3]
    environment = {**os.environ, "FXFLOW_NUM_CPU_DEVICES": "2", "PYTHONPATH": str(root)}
    environment.pop("XLA_FLAGS", None)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, address, str(i)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=root,
        )
        for i in range(2)
    ]
    try:
        told = [process.communicate(timeout=90) for process in started]
    finally:
        for process in started:
            process.kill()
    expected, losses = alone(OPTIMIZERS["clip adamw"], 4)
    lines = []
    for process, (out, errors) in zip(started, told, strict=True):
        assert process.returncode == 0, errors[-2000:]
        lines.append([line for line in out.splitlines() if line.startswith("[4")])
    assert lines[0] == lines[1]
    for line, tolerance in zip(lines[0], (1e-5, 2e-2, 5e-2), strict=True):
        size, found, given = json.loads(line)
        assert size == 4
        assert_same(found, expected, tolerance)
        np.testing.assert_allclose(given, losses, rtol=tolerance)
