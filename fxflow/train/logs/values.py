"""The values, other than numbers, that can be logged.

Each sink writes what it supports: TensorBoard all values, JSON lines and the terminal
numbers and texts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.errors import ArgumentError
from fxflow.train.metrics import Scores
from fxflow.transforms.inspection import FunctionGraph, make_graph


@dataclasses.dataclass(frozen=True)
class Histogram:
    """The distribution of values, such as the weights of a layer.

    Nonfinite values are left out; their number is logged as `<name>/nonfinite`.

    Attributes:
      values: numbers of any shape.
      bins: the number of bins between the smallest and the largest value.
    """

    values: Any
    bins: int = 64


@dataclasses.dataclass(frozen=True)
class Image:
    """An image, or several in a grid.

    Attributes:
      pixels: `[height, width]` (gray), `[height, width, 1 | 3 | 4]`, or `[n, height,
        width, channels]`; floats in [0, 1] or uint8.
    """

    pixels: Any


@dataclasses.dataclass(frozen=True)
class Audio:
    """Sound.

    Attributes:
      samples: float[time] or float[time, channels], clipped to [-1, 1].
      rate: the number of samples per second.
    """

    samples: Any
    rate: int


@dataclasses.dataclass(frozen=True)
class Text:
    """Text, which TensorBoard shows as Markdown.

    Attributes:
      text: the text.
    """

    text: str


@dataclasses.dataclass(frozen=True)
class Curve:
    """A precision-recall curve.

    Attributes:
      scores: a result of `metrics.scores`.
    """

    scores: Scores


@dataclasses.dataclass(frozen=True)
class HyperParameters:
    """The hyperparameters of a run, and its results.

    Attributes:
      parameters: numbers, strings and booleans by name.
      results: numbers by name.
    """

    parameters: Mapping[str, Any]
    results: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Embedding:
    """Points in many dimensions, for TensorBoard's projector.

    Attributes:
      vectors: float[n, d].
      metadata: a string for each vector, or several in columns.
      header: the names of the columns of `metadata`, if there are several.
      images: float[n, size, size, channels] in [0, 1], a small image for each vector.
    """

    vectors: Any
    metadata: Sequence[Any] | None = None
    header: Sequence[str] | None = None
    images: Any = None


class Graph:
    """The dataflow graph of a function.

    Args:
      function: a function of arrays, or a graph from `fxflow.make_graph`.
      *args: the function's arguments, or their types as `ShapeDtypeStruct`.

    Attributes:
      graph: the graph.
    """

    def __init__(
        self, function: Callable[..., Any] | FunctionGraph, *args: Any
    ) -> None:
        self.graph: FunctionGraph = (
            function
            if isinstance(function, FunctionGraph)
            else make_graph(function)(*args)
        )


#: The values that are not numbers.
Value = Histogram | Image | Audio | Text | Curve | HyperParameters | Embedding | Graph


def number(name: str, value: Any) -> float | int:
    """Returns a value as a Python number.

    Raises:
      ArgumentError: it is not a scalar.
    """
    if isinstance(value, int):  # possibly larger than 64 bits
        return int(value)
    host = np.asarray(value)
    if host.size != 1 or host.dtype.kind in "OUSMm" or np.iscomplexobj(host):
        described = f"{host.dtype}{list(host.shape)}"
        raise ArgumentError(
            f"log: {name} must be a number or one of the values of fxflow.train.logs, "
            f"such as Histogram, got {described}"
        )
    if host.dtype.kind in "biu":
        return int(host.item())
    return float(host.astype(np.float64).item())


def pixels(name: str, image: Image) -> np.ndarray[Any, Any]:
    """Returns an image as uint8[height, width, channels].

    Raises:
      ArgumentError: its shape or dtype is not that of an image.
    """
    host = np.asarray(image.pixels)
    if host.ndim == 2:
        host = host[..., None]
    if host.ndim == 4:
        host = _tiled(host)
    if host.ndim != 3 or host.shape[-1] not in (1, 3, 4) or not host.size:
        raise ArgumentError(
            f"log: {name} must be an image [height, width, 1, 3 or 4], or several, but "
            f"its shape is {np.shape(image.pixels)}"
        )
    if host.dtype == np.uint8:
        return host
    if host.dtype.kind in "iucOUS":
        raise ArgumentError(
            f"log: the pixels of {name} must be floats in [0, 1] or uint8, got "
            f"{host.dtype}"
        )
    clean = np.nan_to_num(host.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
    return (np.clip(clean, 0, 1) * 255 + 0.5).astype(np.uint8)


def _tiled(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Arranges several images in a grid."""
    count, height, width, channels = images.shape
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // max(columns, 1))
    whole = np.zeros((rows * columns, height, width, channels), images.dtype)
    whole[:count] = images
    grid = whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def finite(name: str, values: Any) -> tuple[np.ndarray[Any, Any], int]:
    """Returns the finite values, flat, and the number of the others.

    Raises:
      ArgumentError: the values are not real numbers.
    """
    host = np.asarray(values)
    if host.dtype.kind in "cOUSMm":
        hint = ": log their absolute values" if host.dtype.kind == "c" else ""
        raise ArgumentError(
            f"log: the values of {name} must be real numbers, got {host.dtype}{hint}"
        )
    host = host.astype(np.float64).ravel()
    good = host[np.isfinite(host)]
    return good, host.size - good.size


def counted(
    good: np.ndarray[Any, Any], bins: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the counts of a histogram, and the edges of its bins.

    Bins lie between the smallest and the largest value. If these are so close that
    `numpy.histogram` would refuse them, the range is wider.

    Args:
      good: finite float64 values, at least one.
      bins: the number of bins.
    """
    low, high = float(good.min()), float(good.max())
    largest = np.finfo(np.float64).max
    step = math.ulp(max(-low, high))
    if high - low < bins * step or low == high:
        around = max(0.5 if low == high else 0.0, bins * step)
        low, high = max(low - around, -largest), min(high + around, largest)
    # Scale down, because the difference of the largest numbers is infinite.
    scale = 0.5 if max(-low, high) > 1 else 1.0
    edges = np.linspace(low * scale, high * scale, bins + 1) / scale
    return np.histogram(good, edges)
