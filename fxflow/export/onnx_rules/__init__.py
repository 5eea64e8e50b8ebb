"""What each operation is in ONNX: rules by name, a file a family.

A rule takes the `Writer`, the operands and the operation's parameters, and returns the
results. Importing this fills `writer.RULES`.
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
