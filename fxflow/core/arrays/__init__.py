"""What values are: dtypes, array types, arrays.

To be read in this order:

- `dtypes`: the dtypes, their names and properties; 64 bits or 32 by default;
- `promotion`: which dtype mixed operands have;
- `aval`: the type of an array as a program sees it: shape, dtype, weakness; that type
  at a placement, which a key of a compiled program is made of;
- `abstract_ref`: the type of a mutable reference to an array;
- `protocol`: objects that stand for arrays;
- `array`: the immutable array, in host memory or in a buffer of the runtime; from
  numbers and NumPy arrays to arrays, and their types.

What the rest of fxflow needs most can be imported from here.
"""

# fmt: off
from fxflow.core.arrays.abstract_ref import AbstractRef
from fxflow.core.arrays.array import (
    Array, as_array, buffer_of, from_host, host_of, is_arraylike, not_an_array,
    put_host, read_only, typeof, unwrapped,
)
from fxflow.core.arrays.aval import (
    ArrayType, Aval, Axes, Shape, ShapeDtypeStruct, type_on,
)

__all__ = [
    "Array", "as_array", "buffer_of", "from_host", "host_of", "is_arraylike",
    "not_an_array", "put_host", "read_only", "typeof", "unwrapped",
    "ArrayType", "type_on",
    "AbstractRef", "Aval", "Axes", "Shape", "ShapeDtypeStruct",
]
# fmt: on
