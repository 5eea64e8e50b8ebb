"""Trains blocks of ResNet-50 or Inception-v3 to recognize photographs from patches.

    python examples/blocks.py                        # ResNet-50's blocks
    python examples/blocks.py --model inception      # Inception-v3's

Twelve photographs and textures are divided into patches of 64 × 64 pixels: patches of
the upper two thirds are for training, those of the lower third for testing. Weights and
running moments are dicts by name; a block is a function of them.

He et al. 2016, "Deep residual learning for image recognition"; Szegedy et al. 2016,
"Rethinking the Inception architecture for computer vision".
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from helpers.photographs import load_photographs

import fxflow
from fxflow import nn, optim, random
from fxflow import numpy as fnp
from fxflow.train import data, logs, loop, metrics

SIZE = 64
CLASSES = 12

# -- layers ----------------------------------------------------------------------------


class Layers:
    """The weights of a net by name, for a function that applies its layers.

    The first call, with `training=None`, creates them; later calls use them. So a net
    is written once, as the function that computes it.
    """

    def __init__(self, params: Any, state: Any, training: bool | None, key: Any = None):
        self.params, self.state, self.training = dict(params), dict(state), training
        self._keys = self._drawn(key)
        self._count = 0

    @staticmethod
    def _drawn(key: Any) -> Iterator[Any]:
        while True:
            key, one = random.split(key)
            yield one

    def _named(self, kind: str) -> str:
        self._count += 1
        return f"{self._count:03}_{kind}"

    def conv(
        self,
        x: fxflow.Array,
        units: int,
        window: tuple[int, int] = (1, 1),
        stride: int = 1,
        *,
        padding: str = "SAME",
        relu: bool = True,
    ) -> fxflow.Array:
        """Applies a convolution without a bias, batch normalization, and relu."""
        name = self._named("conv")
        if self.training is None:
            made = nn.conv_init(
                next(self._keys), x.shape[-1], units, window, bias=False
            )
            self.params[name] = made, nn.batch_norm_init(units)
            self.state[name] = nn.batch_norm_state(units)
        own, norm = self.params[name]
        x = nn.conv(own, x, strides=(stride, stride), padding=padding)
        self.state[name], x = nn.batch_norm(
            norm, self.state[name], x, training=bool(self.training), momentum=0.9
        )
        return nn.relu(x) if relu else x

    def linear(self, x: fxflow.Array, units: int) -> fxflow.Array:
        """Applies a dense layer."""
        name = self._named("linear")
        if self.training is None:
            self.params[name] = nn.linear_init(next(self._keys), x.shape[-1], units)
        return nn.linear(self.params[name], x)


# -- nets ------------------------------------------------------------------------------


def bottleneck(
    net: Layers, x: fxflow.Array, width: int, stride: int = 1
) -> fxflow.Array:
    """Applies ResNet-50's block: narrow, convolve, widen, and add the input."""
    y = net.conv(x, width)
    y = net.conv(y, width, (3, 3), stride)
    y = net.conv(y, 4 * width, relu=False)
    if x.shape != y.shape:
        x = net.conv(x, 4 * width, stride=stride, relu=False)
    return nn.relu(x + y)


def resnet(net: Layers, x: fxflow.Array) -> fxflow.Array:
    """Applies one block of each of ResNet-50's four stages, half as wide."""
    x = net.conv(x, 32, (7, 7), 2)
    x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
    for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        x = bottleneck(net, x, width, stride)
    return net.linear(fnp.mean(x, (1, 2)), CLASSES)


def pooled(x: fxflow.Array) -> fxflow.Array:
    """Returns the mean of the 3 × 3 pixels around each pixel."""
    return nn.avg_pool(x, (3, 3), (1, 1), "SAME")


def joined(*branches: fxflow.Array) -> fxflow.Array:
    """Concatenates the features of all branches."""
    return fnp.concatenate(branches, -1)


def inception(net: Layers, x: fxflow.Array) -> fxflow.Array:
    """Applies the modules of Inception-v3's figures 5, 6, 7 and 10, half as wide."""
    x = net.conv(x, 16, (3, 3), 2)
    x = net.conv(x, 32, (3, 3))
    x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
    x = joined(  # figure 5: 5 × 5 as two 3 × 3
        net.conv(x, 32),
        net.conv(net.conv(x, 24), 32, (5, 5)),
        net.conv(net.conv(net.conv(x, 32), 48, (3, 3)), 48, (3, 3)),
        net.conv(pooled(x), 16),
    )
    x = joined(  # figure 10: half the height and width
        net.conv(x, 192, (3, 3), 2),
        net.conv(net.conv(net.conv(x, 32), 48, (3, 3)), 48, (3, 3), 2),
        nn.max_pool(x, (3, 3), (2, 2), "SAME"),
    )
    long = net.conv(net.conv(x, 64), 64, (7, 1))
    x = joined(  # figure 6: 7 × 7 as 1 × 7 and 7 × 1
        net.conv(x, 96),
        net.conv(net.conv(net.conv(x, 64), 64, (1, 7)), 96, (7, 1)),
        net.conv(net.conv(net.conv(long, 64, (1, 7)), 64, (7, 1)), 96, (1, 7)),
        net.conv(pooled(x), 96),
    )
    middle, deep = net.conv(x, 192), net.conv(net.conv(x, 224), 192, (3, 3))
    x = joined(  # figure 7: wide
        net.conv(x, 160),
        net.conv(middle, 192, (1, 3)),
        net.conv(middle, 192, (3, 1)),
        net.conv(deep, 192, (1, 3)),
        net.conv(deep, 192, (3, 1)),
        net.conv(pooled(x), 96),
    )
    return net.linear(fnp.mean(x, (1, 2)), CLASSES)


NETS: dict[str, Callable[[Layers, fxflow.Array], fxflow.Array]] = {
    "resnet": resnet,
    "inception": inception,
}

# -- training --------------------------------------------------------------------------


class State(NamedTuple):
    """Everything that a step reads and updates."""

    params: Any
    moments: Any
    optimizer: Any


def patches(seed: int = 0) -> tuple[Any, Any]:
    """Images `u8[n, 64, 64, 3]` and labels `i32[n]` to train on, and to test on."""
    rng = np.random.default_rng(seed)
    found: tuple[list[Any], list[Any]] = ([], [])
    for label, photograph in enumerate(load_photographs()):
        height, width, _ = photograph.shape
        cut = height * 2 // 3
        for rows, part, count in ((0, cut, 120), (cut, height - cut, 40)):
            for _ in range(count):
                top = rows + rng.integers(part - SIZE + 1)
                left = rng.integers(width - SIZE + 1)
                image = photograph[top : top + SIZE, left : left + SIZE]
                found[rows > 0].append((image, np.int32(label)))
    return tuple(
        tuple(np.stack(column) for column in zip(*rows, strict=True)) for rows in found
    )  # type: ignore[return-value]


def scaled(images: Any) -> Any:
    """Converts pixels from 0 to 255 to numbers around 0."""
    return images.astype(fnp.float32) / 127.5 - 1


def flipped(image: Any, rng: np.random.Generator) -> Any:
    """Mirrors half of the images at random."""
    pixels, label = image
    return (pixels[:, ::-1] if rng.random() < 0.5 else pixels), label


def train(
    model: str = "resnet",
    *,
    epochs: int = 6,
    batch_size: int = 32,
    log: Any = None,
    part: int | None = None,
) -> float:
    """Trains a net and returns its accuracy on patches of the lower thirds.

    Args:
        model: one of `NETS`.
        epochs: passes over the patches.
        batch_size: patches in a step.
        log: the `log` of `train.loop.run`.
        part: the number of patches to use for training and for testing; None: all.
    """
    net = NETS[model]
    learned, unseen = (
        tuple(x[:: max(1, len(x) // part)] if part else x for x in rows)
        for rows in patches()
    )

    def init(key: Any) -> tuple[Any, Any]:
        made = Layers({}, {}, None, key)
        net(made, fnp.zeros((1, SIZE, SIZE, 3)))
        return made.params, made.state

    def loss(params: Any, moments: Any, images: Any, labels: Any) -> Any:
        layers = Layers(params, moments, training=True)
        logits = net(layers, scaled(images))
        chosen = nn.one_hot(labels, CLASSES)
        value = -fnp.mean(fnp.sum(nn.log_softmax(logits) * chosen, -1))
        return value, layers.state

    rows = data.arrays(learned).shuffle(0).map(flipped, seed=0)
    batches = rows.batch(batch_size, drop_remainder=True).prefetch()
    steps = epochs * (len(learned[0]) // batch_size)
    optimizer = optim.adam(optim.cosine_decay_schedule(2e-3, steps))

    @fxflow.jit
    def step(state: State, batch: Any) -> tuple[State, Any]:
        gradient = fxflow.value_and_grad(loss, has_aux=True)
        (value, moments), slope = gradient(state.params, state.moments, *batch)
        updates, memory = optimizer.update(slope, state.optimizer, state.params)
        params = optim.apply_updates(state.params, updates)
        return State(params, moments, memory), {"loss": value}

    @fxflow.jit
    def scores(params: Any, moments: Any, images: Any, labels: Any) -> Any:
        logits = net(Layers(params, moments, training=False), scaled(images))
        return metrics.accuracy(logits, labels)

    params, moments = fxflow.jit(init)(random.key(0))
    first = State(params, moments, optimizer.init(params))
    state = loop.run(step, first, batches, epochs=epochs, log=log).state
    size = 96
    totals = [
        scores(state.params, state.moments, *(x[start : start + size] for x in unseen))
        for start in range(0, len(unseen[0]), size)
    ]
    return float(functools.reduce(lambda a, b: a.merge(b), totals).compute())


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description="Train on patches of photographs.")
    parser.add_argument("--model", choices=NETS, default="resnet")
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
    with logs.Logger(logs.terminal()) as log:
        reached = train(given.model, epochs=given.epochs, log=log)
    print(f"accuracy on {CLASSES} photographs' lower thirds: {reached:.1%}")


if __name__ == "__main__":
    main()
