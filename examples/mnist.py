"""Trains a classifier of handwritten digits on the complete MNIST.

    python examples/mnist.py                        # a convolutional net, ≥ 99.2 %
    python examples/mnist.py --model mlp            # a perceptron, ≥ 98 %
    python examples/mnist.py --model softmax        # softmax regression, ≥ 92 %
    python examples/mnist.py --logdir runs/mnist    # also logs, for TensorBoard

    pip install tensorboard xprof && tensorboard --logdir runs

A model is two pure functions: `init(key) -> params` and `apply(params, images) ->
logits`. Everything that changes during training is one pytree, `State`; a step takes
it and returns the next one, in the memory of the donated old one.
"""

import argparse
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.datasets import Mnist, load_mnist
from helpers.picture import draw
from tqdm import tqdm

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, profiler, random
from fxflow import train as training

Params = dict[str, Any]
HE = nn.initializers.he_normal()


# -- models ---------------------------------------------------------------------------


class Model(NamedTuple):
    """A model and its settings for training."""

    init: Callable[[fxflow.Array], Params]
    apply: Callable[[Params, fxflow.Array], fxflow.Array]
    epochs: int
    batch_size: int
    learning_rate: float
    shift: int = 0  # maximum shift of training images, in pixels


def dense_init(key: fxflow.Array, inputs: int, outputs: int) -> Params:
    """Returns a dense layer's weights: `w: f32[inputs, outputs]`, `b: f32[outputs]`."""
    return {"w": HE(key, (inputs, outputs)), "b": fnp.zeros(outputs)}


def dense(layer: Params, x: fxflow.Array) -> fxflow.Array:
    """Maps `x: f32[n, inputs]` to `f32[n, outputs]`."""
    return x @ layer["w"] + layer["b"]


def conv_init(key: fxflow.Array, size: int, inputs: int, outputs: int) -> Params:
    """Returns weights of a convolution: `w: f32[size, size, inputs, outputs]`."""
    return {"w": HE(key, (size, size, inputs, outputs)), "b": fnp.zeros(outputs)}


def conv(layer: Params, x: fxflow.Array, stride: int = 1) -> fxflow.Array:
    """Maps `x: f32[n, h, w, inputs]` to `f32[n, h/stride, w/stride, outputs]`."""
    layout = ("NHWC", "HWIO", "NHWC")
    strides = (stride, stride)
    y = lax.conv_general_dilated(
        x, layer["w"], strides, "SAME", dimension_numbers=layout
    )
    return y + layer["b"]


def softmax_init(key: fxflow.Array) -> Params:
    """Returns parameters of softmax regression."""
    return {"out": dense_init(key, 784, 10)}


def softmax_apply(params: Params, images: fxflow.Array) -> fxflow.Array:
    """Returns logits `f32[n, 10]` of images `f32[n, 28, 28]`, linear in the pixels."""
    with fxflow.named_scope("out"):
        return dense(params["out"], images.reshape(-1, 784))


def mlp_init(key: fxflow.Array) -> Params:
    """Returns parameters of a perceptron with two hidden layers."""
    keys = random.split(key, 3)
    return {
        "hidden1": dense_init(keys[0], 784, 256),
        "hidden2": dense_init(keys[1], 256, 128),
        "out": dense_init(keys[2], 128, 10),
    }


def mlp_apply(params: Params, images: fxflow.Array) -> fxflow.Array:
    """Returns logits `f32[n, 10]` of images `f32[n, 28, 28]`."""
    x = images.reshape(-1, 784)
    with fxflow.named_scope("hidden1"):
        x = nn.relu(dense(params["hidden1"], x))
    with fxflow.named_scope("hidden2"):
        x = nn.relu(dense(params["hidden2"], x))
    with fxflow.named_scope("out"):
        return dense(params["out"], x)


def cnn_init(key: fxflow.Array) -> Params:
    """Returns parameters of two convolutions and two dense layers."""
    keys = random.split(key, 4)
    return {
        "conv1": conv_init(keys[0], 5, 1, 16),
        "conv2": conv_init(keys[1], 5, 16, 32),
        "hidden": dense_init(keys[2], 7 * 7 * 32, 128),
        "out": dense_init(keys[3], 128, 10),
    }


def cnn_apply(params: Params, images: fxflow.Array) -> fxflow.Array:
    """Returns logits `f32[n, 10]` of images; strides take the place of pooling."""
    x = images[..., None]
    with fxflow.named_scope("conv1"):
        x = nn.relu(conv(params["conv1"], x, stride=2))
    with fxflow.named_scope("conv2"):
        x = nn.relu(conv(params["conv2"], x, stride=2))
    with fxflow.named_scope("hidden"):
        x = nn.relu(dense(params["hidden"], x.reshape(-1, 7 * 7 * 32)))
    with fxflow.named_scope("out"):
        return dense(params["out"], x)


MODELS = {
    "cnn": Model(
        cnn_init, cnn_apply, epochs=8, batch_size=128, learning_rate=2e-3, shift=2
    ),
    "mlp": Model(mlp_init, mlp_apply, epochs=8, batch_size=128, learning_rate=1e-3),
    "softmax": Model(
        softmax_init, softmax_apply, epochs=8, batch_size=128, learning_rate=2e-3
    ),
}


# -- training -------------------------------------------------------------------------


class State(NamedTuple):
    """Everything that a training step reads and updates."""

    params: Params
    optimizer: Any


class Step(NamedTuple):
    """The compiled functions of one training run."""

    init: Callable[[fxflow.Array], Any]
    train: Callable[[Any, fxflow.Array, fxflow.Array], tuple[Any, fxflow.Array]]
    correct: Callable[[Params, fxflow.Array, fxflow.Array], fxflow.Array]
    params: Callable[[Any], Params] = lambda state: state.params


def scale(images: fxflow.Array) -> fxflow.Array:
    """Converts pixels `u8` from 0 to 255 to `f32` from 0 to 1."""
    return images.astype(fnp.float32) / 255


def loss_of(model: Model) -> Callable[[Params, fxflow.Array, fxflow.Array], Any]:
    """Returns the mean cross-entropy of a batch as a function of the parameters."""

    def loss(params: Params, images: fxflow.Array, labels: fxflow.Array) -> Any:
        logits = model.apply(params, scale(images))
        with fxflow.named_scope("loss"):
            log_probabilities = nn.log_softmax(logits) * nn.one_hot(labels, 10)
            return -fnp.mean(fnp.sum(log_probabilities, axis=-1))

    return loss


def correct_of(model: Model) -> Callable[[Params, fxflow.Array, fxflow.Array], Any]:
    """Returns a function that counts the correctly classified images of a batch."""

    def correct(params: Params, images: fxflow.Array, labels: fxflow.Array) -> Any:
        return fnp.sum(fnp.argmax(model.apply(params, scale(images)), -1) == labels)

    return correct


def make_step(model: Model, optimizer: Any) -> Step:
    """Compiles what training needs; each function is pure."""
    loss, correct = loss_of(model), correct_of(model)

    def init(key: fxflow.Array) -> State:
        params = model.init(key)
        return State(params, optimizer.init(params))

    def train(state: State, images: fxflow.Array, labels: fxflow.Array) -> Any:
        value, gradients = fxflow.value_and_grad(loss)(state.params, images, labels)
        updates, memory = optimizer.update(gradients, state.optimizer, state.params)
        return State(optim.apply_updates(state.params, updates), memory), value

    return Step(
        fxflow.jit(init),
        fxflow.jit(train, donate_argnums=0),
        fxflow.jit(correct),
    )


def batches(
    key: fxflow.Array, images: np.ndarray, labels: np.ndarray, size: int, shift: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the data in a random order, without the last, short batch.

    Each image is moved by up to `shift` pixels each way, which `key` draws as well.
    """
    order = np.asarray(random.permutation(key, len(labels)))
    moves = random.randint(random.fold_in(key, 1), (2, len(labels)), 0, 2 * shift + 1)
    pixels = np.arange(28)
    padded = np.pad(images, [(0, 0), (shift, shift), (shift, shift)])
    rows, columns = np.asarray(moves)[..., None] + pixels
    for start in range(0, len(labels) - size + 1, size):
        chosen = order[start : start + size]
        at = chosen[:, None, None], rows[chosen, :, None], columns[chosen, None, :]
        yield padded[at], labels[chosen]


def accuracy(
    step: Step, params: Params, images: np.ndarray, labels: np.ndarray
) -> float:
    """Returns the fraction of images whose largest logit is their label's."""
    size = min(1000, len(labels))
    counts = [
        int(step.correct(params, images[i : i + size], labels[i : i + size]))
        for i in range(0, len(labels), size)
    ]
    return sum(counts) / len(labels)


class Curve(NamedTuple):
    """The history of a run: a loss for each step, an accuracy for each epoch.

    The last accuracy of a stopped run is that of its last step.
    """

    losses: list[float]
    accuracies: list[float]


class Stop:
    """In this context, Ctrl-C stops after the step; a second one stops at once.

    A step overwrites the memory of the old state, so the state is complete only at the
    end of a step.
    """

    requested = False

    def __enter__(self) -> "Stop":
        self.before = signal.signal(signal.SIGINT, self.request)
        return self

    def request(self, *_: Any) -> None:
        """Records the request."""
        self.requested = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *_: Any) -> None:
        signal.signal(signal.SIGINT, self.before)


def fit(
    model: Model,
    data: Mnist,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int = 0,
    progress: bool = True,
    make_step: Callable[[Model, Any], Step] = make_step,
    stop: Stop | None = None,
    log: Callable[[int, dict[str, Any]], Any] | None = None,
) -> tuple[Params, Curve]:
    """Trains `model` with Adam under a cosine schedule.

    Args:
        model: the model to train.
        data: MNIST, or a part of it.
        epochs: passes over the training images.
        batch_size: images per step, at most the number of training images.
        learning_rate: the rate of the first step; it falls to 0 at the last.
        seed: seed of the weights and of the order of images.
        progress: whether to show a progress bar.
        make_step: compiles the functions of the run: on one device, on many, …
        stop: ends the run after a step if `stop.requested` is set.
        log: called with a step and values by name; see `fxflow.train.logs`.

    Returns:
        The trained parameters and the learning curve.
    """
    steps = len(data.train_labels) // batch_size
    schedule = optim.cosine_decay_schedule(learning_rate, max(1, steps * epochs))
    step = make_step(model, optim.adam(schedule))
    stop = stop or Stop()

    init_key, order_key = random.split(random.key(seed))
    if progress:
        print("Compiling the training step (seconds; the cache has it next time).")
    started = time.perf_counter()
    state = step.init(init_key)
    # An extra step, so that the bar does not include compilation.
    warm = fnp.zeros((batch_size, 28, 28), fnp.uint8), fnp.zeros(batch_size, fnp.uint8)
    fxflow.block_until_ready(step.train(state, *warm))
    state = step.init(init_key)
    compiled = time.perf_counter()

    curve = Curve([], [])
    with tqdm(
        total=steps * epochs,
        smoothing=0.05,
        disable=not progress,
        bar_format="{desc}{percentage:3.0f}% |{bar:30}| {elapsed}<{remaining}{postfix}",
    ) as bar:
        shown = {"loss": "-", "accuracy": "-"}
        for epoch in range(epochs):
            bar.set_description(f"epoch {epoch + 1}/{epochs}", refresh=False)
            keyed = random.fold_in(order_key, epoch)
            losses = []
            for images, labels in batches(
                keyed, data.train_images, data.train_labels, batch_size, model.shift
            ):
                state, loss = step.train(state, images, labels)
                losses.append(loss)
                if log and len(losses) % 20 == 0:
                    log(epoch * steps + len(losses), {"train/loss": loss})
                # The loss of ten steps ago is ready, so reading it does not wait.
                if len(losses) > 10:
                    shown["loss"] = f"{float(losses[-11]):.3f}"
                    bar.set_postfix(shown, refresh=False)
                bar.update()
                if stop.requested:
                    break
            curve.losses.extend(float(loss) for loss in losses)
            params = step.params(state)
            reached = accuracy(step, params, data.test_images, data.test_labels)
            curve.accuracies.append(reached)
            if log:
                weights = training.logs.histograms(
                    fxflow.tree.map(np.asarray, params), "params/"
                )
                log((epoch + 1) * steps, {"test/accuracy": reached, **weights})
            shown["accuracy"] = f"{reached:.2%}"
            bar.set_postfix(shown)
            if stop.requested:
                break
    if progress:
        print(f"compile {compiled - started:.1f} s", end=", ")
        print(f"train {time.perf_counter() - compiled:.1f} s")
    return step.params(state), curve


def options(description: str, model: str = "cnn") -> argparse.ArgumentParser:
    """Returns a parser of the options that all training runs share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=MODELS, default=model)
    parser.add_argument("--epochs", type=int, help="default: the model's own")
    parser.add_argument("--batch-size", type=int, help="default: the model's own")
    parser.add_argument("--learning-rate", type=float, help="default: the model's own")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def train(
    given: argparse.Namespace, data: Mnist, **settings: Any
) -> tuple[Params, Curve]:
    """Trains with the given options and prints the test accuracy."""
    model = MODELS[given.model]
    params, curve = fit(
        model,
        data,
        epochs=given.epochs or model.epochs,
        batch_size=given.batch_size or model.batch_size,
        learning_rate=given.learning_rate or model.learning_rate,
        seed=given.seed,
        **settings,
    )
    if settings.get("progress", True):
        reached = curve.accuracies[-1]
        print(f"test accuracy: {reached:.2%} of {len(data.test_labels):,} images")
    return params, curve


def log_run(
    log: training.logs.Logger, name: str, settings: dict[str, Any], data: Mnist
) -> None:
    """Logs images, the graph and the settings before training."""
    logs, model = training.logs, MODELS[name]
    params = model.init(random.key(0))
    log(
        0,
        {
            "graph": logs.Graph(
                fxflow.value_and_grad(loss_of(model)),
                params,
                data.train_images[:32],
                data.train_labels[:32],
            ),
            "digits": logs.Image(data.train_images[:64, ..., None] / 255.0),
            "parameters": logs.Text(f"```\n{training.summary(params)}\n```"),
            "settings": logs.Text(str(settings)),
        },
    )


def log_results(
    log: training.logs.Logger,
    step: int,
    settings: dict[str, Any],
    curve: Curve,
    probabilities: np.ndarray,
    data: Mnist,
) -> None:
    """Logs the results: mistakes, a curve, points, the settings with results."""
    logs, metrics = training.logs, training.metrics
    labels = data.test_labels
    matrix = metrics.confusion(probabilities.argmax(-1), labels.astype(int), 10).matrix
    rows = np.asarray(matrix) / np.asarray(matrix).sum(axis=1, keepdims=True)
    chosen = np.arange(min(1000, len(labels)))
    log(
        step,
        {
            "confusion": logs.Image(np.kron(1 - rows, np.ones((16, 16)))),
            "is it an 8?": logs.Curve(metrics.scores(probabilities[:, 8], labels == 8)),
            "points": logs.Embedding(
                np.log(probabilities[chosen] + 1e-6),
                metadata=[str(label) for label in labels[chosen]],
                images=data.test_images[chosen, ..., None] / 255.0,
            ),
            "run": logs.HyperParameters(
                settings, {"test/accuracy": curve.accuracies[-1]}
            ),
        },
    )


def profile_step(model: Model, data: Mnist, folder: str) -> None:
    """Profiles a few steps for TensorBoard, and prints where the time goes."""
    loss, size = loss_of(model), model.batch_size
    gradient = fxflow.jit(fxflow.value_and_grad(loss))
    given = (
        model.init(random.key(0)),
        data.train_images[:size],
        data.train_labels[:size],
    )
    fxflow.block_until_ready(gradient(*given))
    with profiler.trace(folder):
        for number in range(5):
            with profiler.StepTraceAnnotation("train", step_num=number):
                fxflow.block_until_ready(gradient(*given))
    print(profiler.report(gradient, *given, runs=5).table("scope"))


def main(arguments: list[str] | None = None) -> float:
    """Runs the example and returns the test accuracy."""
    parser = options("Train on the complete MNIST. Ctrl-C stops and keeps the picture.")
    parser.add_argument("--plot", metavar="PATH", default="mnist.png")
    parser.add_argument("--logdir", metavar="FOLDER", help="of logs for TensorBoard")
    given = parser.parse_args(arguments)

    data, settings = load_mnist(), {"model": given.model, "seed": given.seed}
    sinks = [training.logs.tensorboard(given.logdir)] if given.logdir else []
    with Stop() as stop, training.logs.Logger(*sinks) as log:
        if sinks:
            log_run(log, given.model, settings, data)
        params, curve = train(given, data, stop=stop, log=log if sinks else None)
        if stop.requested:
            print(f"stopped after {len(curve.losses)} steps")
        model = MODELS[given.model]
        logits = fxflow.jit(lambda images: model.apply(params, scale(images)))
        probabilities = nn.softmax(logits(data.test_images))
        draw(
            curve,
            data.test_images,
            data.test_labels,
            np.asarray(probabilities),
            given.plot,
        )
        if sinks:
            steps = len(curve.losses)
            log_results(log, steps, settings, curve, np.asarray(probabilities), data)
            profile_step(model, data, given.logdir)
    print(f"picture: {Path(given.plot).absolute()}")
    return curve.accuracies[-1]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("stopped") from None
