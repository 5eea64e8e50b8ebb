"""The convolutional nets of the paper on TensorFlow, as layers for each library.

AlexNet: Krizhevsky 2014; OverFeat, the fast one: Sermanet et al. 2013; OxfordNet, model
A: Simonyan and Zisserman 2014; GoogleNet: Szegedy et al. 2014. As in the convnet
benchmarks that the paper cites, without dropout and normalisation.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from . import models
from .library import Library

#: Images in a step: fewer than the paper's 128, which is for GPUs.
BATCH = int(os.environ.get("FXFLOW_BENCH_IMAGES", "8"))
CLASSES = 1000


class Conv(NamedTuple):
    """A convolution and relu."""

    units: int
    window: int
    stride: int = 1
    padding: int = 0


class Pool(NamedTuple):
    """The maximum of windows."""

    window: int
    stride: int
    padding: int = 0


class Mean(NamedTuple):
    """The mean over all positions."""


class Dense(NamedTuple):
    """A dense layer of what stands flat, and relu."""

    units: int
    relu: bool = True


class Inception(NamedTuple):
    """Side by side: convolutions of 1, 3, 5, and of a pool; most after a narrow one."""

    one: int
    narrow3: int
    three: int
    narrow5: int
    five: int
    pooled: int

    def branches(self) -> list[list[Any]]:
        return [
            [Conv(self.one, 1)],
            [Conv(self.narrow3, 1), Conv(self.three, 3, 1, 1)],
            [Conv(self.narrow5, 1), Conv(self.five, 5, 1, 2)],
            [Pool(3, 1, 1), Conv(self.pooled, 1)],
        ]


Layers = Sequence[Any]
HEAD = [Dense(4096), Dense(4096), Dense(CLASSES, relu=False)]
NETS: dict[str, tuple[int, Layers]] = {
    "AlexNet": (
        224,
        [
            *[Conv(64, 11, 4, 2), Pool(3, 2), Conv(192, 5, 1, 2), Pool(3, 2)],
            *[Conv(384, 3, 1, 1), Conv(256, 3, 1, 1), Conv(256, 3, 1, 1), Pool(3, 2)],
            *HEAD,
        ],
    ),
    "OverFeat": (
        231,
        [
            *[Conv(96, 11, 4), Pool(2, 2), Conv(256, 5), Pool(2, 2)],
            *[Conv(512, 3, 1, 1), Conv(1024, 3, 1, 1), Conv(1024, 3, 1, 1), Pool(2, 2)],
            *[Dense(3072), *HEAD[1:]],
        ],
    ),
    "OxfordNet": (
        224,
        [
            *[Conv(64, 3, 1, 1), Pool(2, 2), Conv(128, 3, 1, 1), Pool(2, 2)],
            *[*[Conv(256, 3, 1, 1)] * 2, Pool(2, 2)],
            *[*[Conv(512, 3, 1, 1)] * 2, Pool(2, 2)] * 2,
            *HEAD,
        ],
    ),
    "GoogleNet": (
        224,
        [
            *[Conv(64, 7, 2, 3), Pool(3, 2, 1)],
            *[Conv(64, 1), Conv(192, 3, 1, 1), Pool(3, 2, 1)],
            Inception(64, 96, 128, 16, 32, 32),
            Inception(128, 128, 192, 32, 96, 64),
            Pool(3, 2, 1),
            Inception(192, 96, 208, 16, 48, 64),
            Inception(160, 112, 224, 24, 64, 64),
            Inception(128, 128, 256, 24, 64, 64),
            Inception(112, 144, 288, 32, 64, 64),
            Inception(256, 160, 320, 32, 128, 128),
            Pool(3, 2, 1),
            Inception(256, 160, 320, 32, 128, 128),
            Inception(384, 192, 384, 48, 128, 128),
            *[Mean(), Dense(CLASSES, relu=False)],
        ],
    ),
}


def _after(layer: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an image after a layer."""
    match layer:
        case Conv(units, window, stride, padding):
            return (*_sizes(shape, window, stride, padding), units)
        case Pool(window, stride, padding):
            return (*_sizes(shape, window, stride, padding), shape[-1])
        case Mean():
            return shape[-1:]
        case Dense(units):
            return (units,)
    assert isinstance(layer, Inception)
    return (*shape[:-1], layer.one + layer.three + layer.five + layer.pooled)


def _sizes(shape: Sequence[int], window: int, stride: int, padding: int) -> Any:
    return [(n + 2 * padding - window) // stride + 1 for n in shape[:-1]]


# -- fxflow and JAX --------------------------------------------------------------------


def _params(layers: Layers, shape: tuple[int, ...]) -> list[Any]:
    """The weights of layers that come after an image, `height, width, features`."""
    found: list[Any] = []
    for layer in layers:
        match layer:
            case Conv(units, window):
                w = models.weights(window, window, shape[-1], units)
                found.append({"w": w, "b": models.zeros(units)})
            case Dense(units):
                found.append(models.dense_params(int(numpy.prod(shape)), units))
            case Inception():
                found.append([_params(branch, shape) for branch in layer.branches()])
            case _:
                found.append(None)
        shape = _after(layer, shape)
    return found


def _apply(library: Library, layers: Layers, params: Sequence[Any], x: Any) -> Any:
    np, lax, nn = library.np, library.lax, library.nn
    for layer, own in zip(layers, params, strict=True):
        match layer:
            case Conv(_, _, stride, padding):
                layout = ("NHWC", "HWIO", "NHWC")
                pads = [(padding, padding)] * 2
                strides = (stride, stride)
                x = lax.conv_general_dilated(
                    x, own["w"], strides, pads, dimension_numbers=layout
                )
                x = nn.relu(x + own["b"])
            case Pool(window, stride, padding):
                pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
                windows, strides = (1, window, window, 1), (1, stride, stride, 1)
                x = lax.reduce_window(
                    x, -numpy.inf, lax.max, windows, strides, padding=pads
                )
            case Mean():
                x = np.mean(x, axis=(1, 2))
            case Dense(_, relu):
                x = models.dense(own, x.reshape(len(x), -1))
                x = nn.relu(x) if relu else x
            case Inception():
                parts = [
                    _apply(library, branch, part, x)
                    for branch, part in zip(layer.branches(), own, strict=True)
                ]
                x = np.concatenate(parts, axis=-1)
    return x


def _model(name: str) -> Callable[[Library], models.Model]:
    def make(library: Library) -> models.Model:
        size, layers = NETS[name]
        params = _params(layers, (size, size, 3))

        def loss(params: Any, x: Any, labels: Any) -> Any:
            logits = _apply(library, layers, params, x)
            return models.cross_entropy(library, logits, labels)

        x = models.weights(BATCH, size, size, 3)
        return models.Model(loss, params, (x, models.integers(CLASSES, BATCH)))

    return make


MODELS = {name: _model(name) for name in NETS}

# -- PyTorch ---------------------------------------------------------------------------


def torch_modules(torch: Any, layers: Layers, shape: tuple[int, ...]) -> Any:
    """The layers as a module; `shape` is that of an image, features last as above."""
    nn = torch.nn

    class Beside(nn.Module):  # type: ignore[misc]
        def __init__(self, branches: Sequence[Any]) -> None:
            super().__init__()
            self.branches = nn.ModuleList(branches)

        def forward(self, x: Any) -> Any:
            return torch.cat([branch(x) for branch in self.branches], dim=1)

    def made() -> Iterator[Any]:
        now, flat = shape, False
        for layer in layers:
            match layer:
                case Conv(units, window, stride, padding):
                    yield nn.Conv2d(now[-1], units, window, stride, padding)
                    yield nn.ReLU()
                case Pool(window, stride, padding):
                    yield nn.MaxPool2d(window, stride, padding)
                case Mean():
                    yield nn.AdaptiveAvgPool2d(1)
                case Dense(units, relu):
                    if not flat:
                        flat = True
                        yield nn.Flatten()
                    yield nn.Linear(int(numpy.prod(now)), units)
                    if relu:
                        yield nn.ReLU()
                case Inception():
                    yield Beside(
                        [torch_modules(torch, b, now) for b in layer.branches()]
                    )
            now = _after(layer, now)

    return nn.Sequential(*made())
