"""What can be logged besides numbers: each a small description of one value.

Sinks take what they can show: TensorBoard all of it, JSON lines and the terminal
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
    """How values are distributed, such as the weights of a layer.

    What is not finite is left out and counted, as `<name>/nonfinite`.

    Attributes:
      values: numbers of any shape.
      bins: how many, between the smallest and the largest.
    """

    values: Any
    bins: int = 64


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture, or several side by side.

    Attributes:
      pixels: `[height, width]` grey, `[height, width, 1 | 3 | 4]`, or `[n, height,
        width, channels]`; floats in [0, 1] or uint8.
    """

    pixels: Any


@dataclasses.dataclass(frozen=True)
class Audio:
    """Sound.

    Attributes:
      samples: float[time] or float[time, channels] in [-1, 1]; what is beyond is cut.
      rate: samples a second.
    """

    samples: Any
    rate: int


@dataclasses.dataclass(frozen=True)
class Text:
    """Words; TensorBoard shows Markdown.

    Attributes:
      text: the words.
    """

    text: str


@dataclasses.dataclass(frozen=True)
class Curve:
    """Precision and recall at all thresholds.

    Attributes:
      scores: what `metrics.scores` counted.
    """

    scores: Scores


@dataclasses.dataclass(frozen=True)
class HyperParameters:
    """What a run was made with, and what came of it.

    Attributes:
      parameters: numbers, texts and booleans by name.
      results: numbers by name.
    """

    parameters: Mapping[str, Any]
    results: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Embedding:
    """Points in many dimensions, for the projector.

    Attributes:
      vectors: float[n, d].
      metadata: a text for each, or several under the names of `header`.
      header: names of the columns of `metadata`, if there are several.
      images: float[n, size, size, channels] in [0, 1], a small picture for each.
    """

    vectors: Any
    metadata: Sequence[Any] | None = None
    header: Sequence[str] | None = None
    images: Any = None


class Graph:
    """The dataflow graph of a function.

    Args:
      function: of arrays, or a graph of `fxflow.make_graph`.
      *args: its arguments, or their types as `ShapeDtypeStruct`.

    Attributes:
      graph: what is drawn.
    """

    def __init__(
        self, function: Callable[..., Any] | FunctionGraph, *args: Any
    ) -> None:
        self.graph: FunctionGraph = (
            function
            if isinstance(function, FunctionGraph)
            else make_graph(function)(*args)
        )


#: What is not a number.
Value = Histogram | Image | Audio | Text | Curve | HyperParameters | Embedding | Graph


def number(name: str, value: Any) -> float | int:
    """Returns a value as a Python number.

    Raises:
      ArgumentError: it is not a scalar.
    """
    if isinstance(value, int):  # of any size
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
            f"log: {name} must be an image [height, width, 1, 3 or 4], or several, got "
            f"the shape {np.shape(image.pixels)}"
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
    """Returns several images as one, in rows."""
    count, height, width, channels = images.shape
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // max(columns, 1))
    whole = np.zeros((rows * columns, height, width, channels), images.dtype)
    whole[:count] = images
    grid = whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def finite(name: str, values: Any) -> tuple[np.ndarray[Any, Any], int]:
    """Returns the finite ones of values, flat, and how many are not.

    Raises:
      ArgumentError: they are not real numbers.
    """
    host = np.asarray(values)
    if host.dtype.kind in "cOUSMm":
        hint = ": give their absolute values" if host.dtype.kind == "c" else ""
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

    Bins lie between the smallest and the largest value, or around them where too few
    numbers lie between, which `numpy.histogram` refuses.

    Args:
      good: finite float64 values, at least one.
      bins: how many.
    """
    low, high = float(good.min()), float(good.max())
    largest = np.finfo(np.float64).max
    step = math.ulp(max(-low, high))
    if high - low < bins * step or low == high:
        around = max(0.5 if low == high else 0.0, bins * step)
        low, high = max(low - around, -largest), min(high + around, largest)
    # Half of it, because the difference of the largest numbers is infinite.
    scale = 0.5 if max(-low, high) > 1 else 1.0
    edges = np.linspace(low * scale, high * scale, bins + 1) / scale
    return np.histogram(good, edges)
