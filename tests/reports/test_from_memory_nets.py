"""Networks and what surrounds them, as JAX users write them from memory."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax, nn, optim, random, serve, train
from fxflow.sharding import Mesh, NamedSharding
from fxflow.sharding import PartitionSpec as P

RNG = np.random.default_rng(0)
cross_entropy = optim.losses.softmax_cross_entropy_with_integer_labels


def fit(tx: Any, loss: Callable[..., Any], params: Any, steps: int) -> tuple[Any, Any]:
    """Returns the parameters after some steps, and the losses before each."""

    @fxflow.jit
    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, grads = fxflow.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return (optim.apply_updates(params, updates), state), value

    carry, losses = lax.scan(step, (params, tx.init(params)), length=steps)
    return carry[0], losses


def test_convolutions_with_batch_norm() -> None:
    x = RNG.normal(size=(24, 6, 6, 1)).astype(np.float32)
    labels = np.arange(24) % 2
    x[labels == 1, :, 2] += 1.5  # a bright row
    keys = random.split(random.key(0), 2)
    params = {
        "conv": nn.conv_init(keys[0], 1, 4, (3, 3)),
        "norm": nn.batch_norm_init(4),
        "head": nn.linear_init(keys[1], 36, 2),
    }

    def apply(params: Any, moments: Any, x: Any, training: bool) -> Any:
        x = nn.conv(params["conv"], x, padding="SAME")
        moments, x = nn.batch_norm(params["norm"], moments, x, training=training)
        x = nn.avg_pool(nn.relu(x), (2, 2), (2, 2))
        return nn.linear(params["head"], x.reshape(x.shape[0], -1)), moments

    def loss(params: Any, moments: Any) -> Any:
        logits, moments = apply(params, moments, x, True)
        return cross_entropy(logits, labels).mean(), moments

    tx = optim.adam(0.03)
    state, moments = tx.init(params), nn.batch_norm_state(4)

    @fxflow.jit
    def step(params: Any, state: Any, moments: Any) -> Any:
        (value, moments), grads = fxflow.value_and_grad(loss, has_aux=True)(
            params, moments
        )
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state, moments, value

    for _ in range(40):
        params, state, moments, value = step(params, state, moments)
    logits, same = apply(params, moments, x, False)
    assert value < 0.1 and (fnp.argmax(logits, -1) == labels).all()
    assert fxflow.tree.all(fxflow.tree.map(fnp.array_equal, same, moments))


def test_lstm_counts_ones() -> None:
    bits = RNG.integers(0, 2, (6, 16, 1)).astype(np.float32)  # time first, as in scan
    keys = random.split(random.key(1), 2)
    params = {
        "cell": nn.lstm_cell_init(keys[0], 1, 8),
        "head": nn.linear_init(keys[1], 8, 1),
    }

    def apply(params: Any) -> Any:
        step = functools.partial(nn.lstm_cell, params["cell"])
        carry = fnp.zeros((16, 8)), fnp.zeros((16, 8))
        _, hidden = lax.scan(step, carry, bits)
        return nn.linear(params["head"], hidden)[..., 0]

    counts = np.cumsum(bits[..., 0], axis=0) / 4
    loss = lambda params: optim.losses.squared_error(apply(params), counts).mean()
    params, losses = fit(optim.adam(0.03), loss, params, 80)
    assert losses[0] > 0.2 and losses[-1] < 0.01


def test_transformer_repeats_a_pattern() -> None:
    tokens = fnp.asarray(np.tile([3, 1, 4, 2], 4)[None])
    keys = random.split(random.key(2), 6)
    init = nn.initializers.normal(0.2)
    params = {
        "token": nn.embedding_init(keys[0], 5, 16),
        "place": init(keys[1], (15, 16), fnp.float32),
        "norm": nn.layer_norm_init(16),
        "qkv": nn.linear_init(keys[2], 16, 48),
        "out": nn.linear_init(keys[3], 16, 16),
        "up": nn.linear_init(keys[4], 16, 32),
        "down": nn.linear_init(keys[5], 32, 16),
    }

    def apply(params: Any, tokens: Any) -> Any:
        x = nn.embedding(params["token"], tokens) + params["place"][: tokens.shape[1]]
        split = lambda h: h.reshape(*h.shape[:-1], 2, 8)
        q, k, v = fnp.split(nn.linear(params["qkv"], x), 3, axis=-1)
        heads = nn.dot_product_attention(split(q), split(k), split(v), is_causal=True)
        x = nn.layer_norm(
            params["norm"], x + nn.linear(params["out"], heads.reshape(x.shape))
        )
        x = x + nn.linear(params["down"], nn.gelu(nn.linear(params["up"], x)))
        return x @ params["token"]["w"].T

    def loss(params: Any) -> Any:
        return cross_entropy(apply(params, tokens[:, :-1]), tokens[:, 1:]).mean()

    rate = optim.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=0.02, warmup_steps=10, decay_steps=60
    )
    tx = optim.chain(
        optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=1e-3)
    )
    params, losses = fit(tx, loss, params, 60)
    assert losses[0] > 1 and losses[-1] < 0.1

    assert (fxflow.jit(apply)(params, tokens[:, :-1]).argmax(-1) == tokens[:, 1:]).all()


def test_pmap_and_shard_map_make_the_step_of_one_device() -> None:
    x = RNG.normal(size=(16, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32)
    loss = lambda w, x, y: fnp.mean((x @ w - y) ** 2)

    def step(w: Any, x: Any, y: Any) -> Any:
        value, grad = fxflow.value_and_grad(loss)(w, x, y)
        return w - 0.1 * grad, value

    def averaged(w: Any, x: Any, y: Any) -> Any:
        value, grad = fxflow.value_and_grad(loss)(w, x, y)
        return w - 0.1 * lax.pmean(grad, "i"), lax.psum(value, "i") / lax.psum(1, "i")

    wanted, value = step(fnp.zeros(3), x, y)

    devices = fxflow.local_device_count()
    split = lambda a: a.reshape(devices, -1, *a.shape[1:])
    mapped = fxflow.pmap(averaged, axis_name="i", in_axes=(None, 0, 0))
    ws, values = mapped(fnp.zeros(3), split(x), split(y))
    np.testing.assert_allclose(ws, np.tile(wanted, (devices, 1)), 1e-5)
    np.testing.assert_allclose(values, value, 1e-5)

    mesh = Mesh(np.array(fxflow.devices()), ("i",))

    @fxflow.jit
    @functools.partial(
        fxflow.shard_map, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P()
    )
    def sharded(w: Any, x: Any, y: Any) -> Any:
        # The loss of all: its gradient by a replicated weight is that of all, too.
        whole = lambda w: lax.pmean(loss(w, x, y), "i")
        value, grad = fxflow.value_and_grad(whole)(w)
        return w - 0.1 * grad, value

    # And without a word about devices, by the placement of the data.
    rows = NamedSharding(mesh, P("i"))
    placed = fxflow.device_put((x, y), rows)
    for found in (sharded(fnp.zeros(3), x, y), fxflow.jit(step)(fnp.zeros(3), *placed)):
        np.testing.assert_allclose(found[0], wanted, 1e-5)
        np.testing.assert_allclose(found[1], value, 1e-5)


def test_a_run_that_resumes_logs_what_an_unbroken_one_logs(tmp_path: Path) -> None:
    x = RNG.normal(size=(8, 2)).astype(np.float32)
    tx = optim.adam(0.1)

    @fxflow.jit
    def step(state: Any) -> Any:
        key, use = random.split(state["key"])
        noise = random.normal(use, (8,)) / 10
        loss = lambda w: fnp.mean((x @ w - x.sum(1) - noise) ** 2)
        value, grads = fxflow.value_and_grad(loss)(state["params"])
        updates, opt = tx.update(grads, state["opt"])
        params = optim.apply_updates(state["params"], updates)
        return {"params": params, "opt": opt, "key": key}, value

    def run(name: str, steps: int) -> list[float]:
        params = fnp.zeros(2)
        state = {"params": params, "opt": tx.init(params), "key": random.key(0)}
        log = train.logs.Logger(train.logs.json_lines(tmp_path / f"{name}.jsonl"))
        with train.checkpoint.Checkpointer(tmp_path / name, keep=2) as saved, log:
            start = saved.latest()
            if start is not None:
                state = saved.restore(state)
            for number in range(0 if start is None else start + 1, steps):
                state, loss = step(state)
                log(number, {"loss": loss})
                saved.save(number, state)
        assert saved.steps() == [steps - 2, steps - 1]
        lines = train.logs.read_json_lines(tmp_path / f"{name}.jsonl")
        return [line["loss"] for line in lines]

    run("broken", 3)
    assert run("broken", 6) == run("whole", 6)


LOADED = """
import json, sys
from fxflow import export
import fxflow.numpy as fnp

program = export.load(sys.argv[1])
print(json.dumps([program.call(fnp.ones((n, 3))).tolist() for n in (1, 2)]))
"""


def test_a_program_is_exported_loaded_elsewhere_and_served(tmp_path: Path) -> None:
    predict = fxflow.jit(lambda x: fnp.tanh(x).sum(1))
    rows = fxflow.ShapeDtypeStruct(export.symbolic_shape("batch, 3"), fnp.float32)
    exported = export.export(predict)(rows)
    export.save(tmp_path / "net.fx", exported)
    command = [sys.executable, "-c", LOADED, str(tmp_path / "net.fx")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wanted = float(predict(fnp.ones((1, 3)))[0])
    np.testing.assert_allclose(json.loads(printed)[1], [wanted] * 2, 1e-6)

    model = serve.load_model(str(tmp_path / "net.fx"))
    signature = model.prepare(max_batch=2)
    assert [str(x) for x in signature.inputs] == ["f32[batch,3]"]
    (served,) = model.run([np.ones((2, 3), np.float32)], rows=2)
    np.testing.assert_allclose(served, [wanted] * 2, 1e-6)
