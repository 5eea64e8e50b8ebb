"""Rules that convert operations to ONNX, one file per family.

A rule takes the `Writer`, the operands and the operation's parameters, and returns the
results. Importing this package fills `writer.RULES`.
"""

from fxflow.export.onnx_rules import (
    control_flow as control_flow,
    elementwise as elementwise,
    indexing as indexing,
    movement as movement,
    products as products,
    reductions as reductions,
)
from fxflow.export.onnx_rules.writer import Value, Writer

__all__ = ["Value", "Writer"]
