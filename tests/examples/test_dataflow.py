"""The examples of dataflow train as one device does, and place what they say."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, optim, random
from tests.examples.programs import example

pytest.importorskip("tqdm", reason="pip install fxflow[examples]")

DEVICES = fxflow.local_devices()


@pytest.fixture(scope="module")
def transformer() -> ModuleType:
    return example("pipeline_transformer")


def small(module: ModuleType, **changes: Any) -> Any:
    settings = module.Settings(
        width=8, heads=2, blocks=2, length=6, batch=8, microbatches=4, steps=3
    )
    return settings._replace(**changes)


def counting(symbols: int, length: int = 200) -> np.ndarray:
    return (np.arange(length) * 3 % symbols).astype(np.int32)


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
def test_pipeline_transformer_is_that_of_one_program(
    transformer: ModuleType, schedule: str
) -> None:
    settings, text = small(transformer), counting(7)
    losses, plan = transformer.fit(text, 7, settings, DEVICES[:2], schedule)
    assert {place.device for place in plan.places} == set(DEVICES[:2])
    # The same step as one program.
    loss = transformer.make_loss(2, [1, 1], dataflow.stages(2))
    optimizer = optim.adam(settings.rate)
    step = fxflow.jit(transformer.make_step(loss, optimizer, settings.microbatches))
    params = transformer.init(random.key(0), 7, settings)
    state = transformer.State(params, optimizer.init(params))
    source = transformer.batches(text, settings)
    next(source)
    for expected in losses:
        state, value = step(state, next(source))
        assert float(value) == pytest.approx(expected, rel=1e-4)


def test_pipeline_transformer_keeps_its_state_in_the_stages(
    transformer: ModuleType,
) -> None:
    settings = small(transformer)
    loss = transformer.make_loss(2, [1, 1], dataflow.stages(2))
    optimizer = optim.adam(settings.rate)
    step = dataflow.jit(transformer.make_step(loss, optimizer, 4), devices=DEVICES[1:3])
    params = transformer.init(random.key(0), 7, settings)
    tokens = next(transformer.batches(counting(7), settings))
    state, _ = step(transformer.State(params, optimizer.init(params)), tokens)
    for moment in (state.params, state.optimizer[0].mu, state.optimizer[0].nu):
        for stage, block in enumerate(moment["blocks"]):
            for leaf in fxflow.tree.leaves(block):
                assert leaf.devices() == {DEVICES[1 + stage]}


def test_characters_are_numbers(transformer: ModuleType) -> None:
    text, symbols = transformer.characters([["be", ","], ["a"]])
    assert "".join(symbols[n] for n in text) == "be ,\na"


@pytest.mark.parametrize(("blocks", "parts"), [(4, 2), (5, 2), (3, 4)])
def test_even_cuts_have_all_blocks(
    transformer: ModuleType, blocks: int, parts: int
) -> None:
    cuts = transformer.even(blocks, parts)
    assert sum(cuts) == blocks and len(cuts) == parts
    assert max(cuts) - min(cuts) <= 1


def test_unequal_stages_gives_the_larger_head_fewer_blocks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = example("unequal_stages")
    assert module.cuts_of(2, 2) == [(0, 2), (1, 1), (2, 0)]
    settings = small(module, width=16, blocks=4, length=16, batch=16, steps=2)
    best = module.run(counting(500), 500, settings, DEVICES[:2])
    assert sum(best) == 4 and best[0] > best[1]
    told = capsys.readouterr().out.partition("over equal stages: ")[2]
    assert float(told.split()[0]) > 1.05


def reviews(count: int) -> tuple[list[list[str]], np.ndarray]:
    """Sentences of drawn words, of which one praises or blames."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    sentences = [
        [*(f"w{n}" for n in rng.integers(0, 30, 4)), "yes" if label else "no"]
        for label in labels
    ]
    return sentences, labels.astype(np.int32)


def test_host_embedding_learns_and_sends_no_table() -> None:
    module = example("host_embedding")
    sentences, labels = reviews(300)
    words = module.encoded(sentences, 1000)
    assert words.shape == (300, module.LENGTH) and words.max() < 1000
    assert (words > 0).sum(1).tolist() == [9] * 300  # five words and four pairs
    devices = {"host": DEVICES[1], "accelerator": DEVICES[2]}
    accuracy, plan = module.fit(words, labels, devices, rows=1000, size=8, rate=1.0)
    assert accuracy > 0.9
    table = 1000 * 8 * 4
    sent = [e for e in plan.edges if e.place.device == DEVICES[2]]
    assert sent and all(edge.nbytes < table for edge in sent)
    for fragment in plan.fragments:
        names = {node.primitive.name for node in fragment.graph.nodes}
        if names & {"gather", "scatter_add"} and fragment.place.device == DEVICES[2]:
            gathered = [v.aval.shape for v in fragment.graph.inputs]
            assert (1000, 8) not in gathered


def test_two_models_run_on_a_device_each(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("two_models")
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, 10, n).astype(np.uint8)
        images = rng.integers(0, 50, (n, 28, 28)).astype(np.uint8)
        images[np.arange(n), 2 * labels + 2, 5:20] = 255  # a line says which digit
        return images, labels

    data = example("mnist").Mnist(*draw(512), *draw(64))
    devices = {"mlp": DEVICES[1], "cnn": DEVICES[2]}
    reached = module.run(data, devices, epochs=2)
    assert set(reached) == {"both", "mlp", "cnn"}
    assert (
        reached["both"] >= min(reached["mlp"], reached["cnn"])
        and min(reached.values()) > 0.15
    )
    params = {n: module.MODELS[n].init(random.key(0)) for n in module.NAMES}
    both = dataflow.jit(module.answer, devices=devices)
    found = {
        node.primitive.name: fragment.place.device
        for fragment in both.plan(params, data.test_images).fragments
        for node in fragment.graph.nodes
    }
    assert found["conv_general_dilated"] == DEVICES[2]
    alone = dataflow.jit(module.probabilities, devices={"mlp": DEVICES[1]})
    plan = alone.plan({"mlp": params["mlp"]}, data.test_images)
    assert [place.device for place in plan.places] == [DEVICES[1]]
    assert "on 2 devices" in capsys.readouterr().out
