"""What values are: dtypes, array types, arrays.

To be read in this order:

- `dtypes`: the dtypes, their names and properties; 64 bits or 32 by default;
- `promotion`: which dtype mixed operands have;
- `aval`: the type of an array as a program sees it: shape, dtype, weakness;
- `array_type`: that type at a place: what a key of a compiled program is made of;
- `array`: the immutable array, in host memory or in a buffer of the runtime;
- `convert`: from numbers and NumPy arrays to arrays, and their types.
"""
