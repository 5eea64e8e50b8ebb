"""What values are: dtypes, array types, arrays.

To be read in this order:

- `dtypes`: the dtypes, their names and properties; 64 bits or 32 by default;
- `promotion`: which dtype mixed operands have;
- `aval`: the type of an array as a program sees it: shape, dtype, weakness; that type
  at a placement, which a key of a compiled program is made of;
- `abstract_ref`: the type of a mutable reference to an array;
- `array`: the immutable array, in host memory or in a buffer of the runtime;
- `protocol`: objects that stand for arrays;
- `convert`: from numbers and NumPy arrays to arrays, and their types.

What the rest of fxflow needs most can be imported from here.
"""

# fmt: off
from fxflow.core.arrays.abstract_ref import AbstractRef
from fxflow.core.arrays.array import Array, buffer_of, from_host, host_of, put_host
from fxflow.core.arrays.aval import (
    ArrayType, Aval, Axes, Shape, ShapeDtypeStruct, type_on,
)
from fxflow.core.arrays.convert import (
    as_array, is_arraylike, not_an_array, read_only, typeof, unwrapped,
)

__all__ = [
    "Array", "buffer_of", "from_host", "host_of", "put_host",
    "ArrayType", "type_on",
    "AbstractRef", "Aval", "Axes", "Shape", "ShapeDtypeStruct",
    "as_array", "is_arraylike", "not_an_array", "read_only", "typeof", "unwrapped",
]
# fmt: on
