"""Logs values to the terminal, to JSON lines and to TensorBoard.

Read the modules in this order: `values` (what can be logged), `logger`, the sinks in
`text` and `tensorboard`, `dataflow` (graphs for TensorBoard), `profiles` (of steps).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.train.logs.logger import Logger, Sink, histograms
from fxflow.train.logs.profiles import profile
from fxflow.train.logs.tensorboard import tensorboard
from fxflow.train.logs.text import json_lines, read_json_lines, terminal
from fxflow.train.logs.values import (
    Audio, Curve, Embedding, Graph, Histogram, HyperParameters, Image, Text,
)

__all__ = [
    "Logger", "Sink",
    "json_lines", "read_json_lines", "tensorboard", "terminal",
    "Audio", "Curve", "Embedding", "Graph", "Histogram", "HyperParameters", "Image",
        "Text", "histograms",
    "profile",
]

_public(globals(), __all__)
# fmt: on
