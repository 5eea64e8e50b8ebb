"""What the functions with weights share: how their arguments are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.nn.initializers import Initializer, lecun_normal

#: The weights of one layer.
Params = dict[str, Array]


def drawn(
    name: str,
    what: str,
    init: Initializer | None,
    key: Any,
    shape: Sequence[int],
    dtype: Any,
) -> Array:
    """Returns the first value of a weight.

    Args:
      name: of the function, for messages.
      what: the argument's name.
      init: the initializer that the user gave; None means `lecun_normal`.
      key: one key.
      shape: shape of the weight.
      dtype: dtype of the weight; None means the default float.

    Raises:
      ArgumentError: it is no initializer.
      ShapeError: it makes an array of another shape.
    """
    if init is None:
        init = lecun_normal()
    if not callable(init):
        raise ArgumentError(
            f"{name}: {what} must be an initializer, such as those of "
            f"nn.initializers, got {init!r}"
        )
    out: Array = shaped(
        name, f"what {what} makes", init(key, shape, dtype), shape, "floats"
    )
    return out


def array(name: str, what: str, x: Any, kind: str) -> Any:
    """Returns an argument that is an array of floats, integers or bools.

    Raises:
      ArgumentError: it is not an array.
      DtypeError: it is of another kind.
    """
    if not is_arraylike(x):
        raise not_an_array(x, f"{name}: {what} is")
    aval = typeof(x)
    right = {
        "floats": dtypes.is_floating,
        "integers": dtypes.is_integer,
        "bools": dtypes.is_bool,
    }[kind](aval.dtype)
    if not right:
        raise DtypeError(f"{name}: {what} must be {kind}, got {aval}")
    return x


def floats(name: str, what: str, x: Any, *axes: str) -> Any:
    """Returns an argument that is an array of floats with at least some axes.

    Args:
      name: of the function, for messages.
      what: the argument's name.
      x: the argument.
      *axes: what its last axes are.

    Raises:
      ArgumentError: it is not an array.
      DtypeError: it has no floats.
      ShapeError: it has fewer axes.
    """
    aval = typeof(array(name, what, x, "floats"))
    if aval.ndim < len(axes):
        raise ShapeError(
            f"{name}: {what} must be float[..., {', '.join(axes)}], got {aval}"
        )
    return x


def shaped(name: str, what: str, x: Any, shape: Sequence[int], kind: str) -> Any:
    """Returns an argument that is an array of one kind and shape.

    Raises:
      ArgumentError: it is not an array.
      DtypeError: it is of another kind.
      ShapeError: it has the wrong shape.
    """
    aval = typeof(array(name, what, x, kind))
    if aval.shape != tuple(shape):
        listed = ", ".join(map(str, shape))
        raise ShapeError(
            f"{name}: {what} must be {kind} of shape [{listed}], got {aval}"
        )
    return x


def weights(name: str, params: Any, /, what: str = "params", **axes: str) -> list[Any]:
    """Returns the weights of a layer, in the order asked for.

    Args:
      name: of the function, for messages.
      params: what the user gave.
      what: the argument's name.
      **axes: for each weight its axes, such as `w="inputs outputs"`. What is called
        alike is as long.

    Raises:
      ArgumentError: it is not a dict of these arrays.
      DtypeError: a weight has no floats.
      ShapeError: a weight has other axes.
    """
    listed = ", ".join(f'"{k}" [{v.replace(" ", ", ")}]' for k, v in axes.items())
    if not isinstance(params, Mapping) or not all(key in params for key in axes):
        given = list(params) if isinstance(params, Mapping) else type(params).__name__
        raise ArgumentError(f"{name}: {what} must be a dict with {listed}, got {given}")
    found = [floats(name, f'{what}["{key}"]', params[key]) for key in axes]
    lengths: dict[str, int] = {}
    for (key, words), x in zip(axes.items(), found, strict=True):
        shape, names = typeof(x).shape, words.split()
        if len(shape) != len(names) or any(
            lengths.setdefault(word, n) != n
            for word, n in zip(names, shape, strict=True)
        ):
            raise ShapeError(
                f'{name}: {what}["{key}"] must be [{", ".join(names)}], got '
                f"{typeof(x)}"
                + (f" with {lengths}" if len(shape) == len(names) else "")
            )
    return found


def rank(params: Any, key: str, otherwise: int) -> int:
    """Returns how many axes a weight has; `otherwise` if it is not an array."""
    found = params.get(key) if isinstance(params, Mapping) else None
    return typeof(found).ndim if is_arraylike(found) else otherwise
