"""Exports functions as portable programs, and as programs for other runtimes.

`export` turns a jitted function into a portable program, `Exported.serialize` into
bytes, which `deserialize` and JAX read; `save` and `load` use a file, which can include
the parameters (`docs/guides/export.md`). `iree`, `onnx` and `c_library` make programs
for other runtimes, on phones or boards (`docs/guides/phones.md`).
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.export.checks import DisabledSafetyCheck
from fxflow.export.exported import Exported, deserialize
from fxflow.export.files import Bundle, load, save
from fxflow.export.records import (
    CALLING_CONVENTION as maximum_supported_calling_convention_version,
    OLDEST_CALLING_CONVENTION as minimum_supported_calling_convention_version,
)
from fxflow.export.sizes import is_symbolic_dim
from fxflow.export.trees import (
    register_namedtuple_serialization, register_pytree_node_serialization,
)

if _typing.TYPE_CHECKING:
    from fxflow.export.c_libraries import CLibrary, c_library
    from fxflow.export.exporting import default_export_platform, export
    from fxflow.export.iree_modules import IreeModule, iree, load_iree
    from fxflow.export.onnx_models import OnnxModel, onnx
    from fxflow.export.quantization import QuantizedWeights, dequantize, quantize
    from fxflow.export.symbolic import (
        SymbolicScope, symbolic_args_specs, symbolic_shape,
    )

__all__ = [
    # portable programs
    "export", "Exported", "deserialize",
    "register_namedtuple_serialization", "register_pytree_node_serialization",
    "DisabledSafetyCheck", "default_export_platform",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    # symbolic sizes
    "symbolic_shape", "symbolic_args_specs", "SymbolicScope", "is_symbolic_dim",
    # files
    "save", "load", "Bundle",
    # IREE
    "iree", "load_iree", "IreeModule",
    # ONNX
    "onnx", "OnnxModel",
    # C without a runtime
    "c_library", "CLibrary",
    # int8 weights
    "quantize", "dequantize", "QuantizedWeights",
]

_public(
    globals(),
    __all__,
    # Loading a program does not need these.
    elsewhere={
        "c_libraries": "CLibrary c_library",
        "exporting": "default_export_platform export",
        "iree_modules": "IreeModule iree load_iree",
        "onnx_models": "OnnxModel onnx",
        "quantization": "QuantizedWeights dequantize quantize",
        "symbolic": "SymbolicScope symbolic_args_specs symbolic_shape",
    },
)
# fmt: on
