"""Recurrent layers: cells of one step, and loops of them over sequences.

A cell is `cell(params, state, x) -> (state, y)`, a step of `lax.scan`. A layer goes
over whole sequences, `layer(params, state, xs) -> (state, ys)`: its params are a list,
one item for each layer on top of another, each the weights of a cell or, if it reads in
both directions, a dict of two, `"forward"` and `"backward"`. A state is built like the
params, a cell's state in the place of its weights.

The products of all inputs with their weights are one product, made before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import shown
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural, shape_or_length
from fxflow.nn import initializers
from fxflow.nn._layers import Params, drawn, floats, shaped, weights
from fxflow.nn.activations import sigmoid
from fxflow.nn.dropout import dropout
from fxflow.numpy._operands import ArrayLike, DTypeLike

Layer = Params | dict[str, Params]
Initializer = initializers.Initializer


class _Kind(NamedTuple):
    """A kind of cell.

    Attributes:
      axes: the names of its weights, and their axes.
      gates: how many vectors the products make.
      parts: how many vectors a state is; one stands alone.
      step: `step(weights, state, product) -> state`, the product that of `x` with `w`,
        `b` added.
    """

    axes: dict[str, str]
    gates: int
    parts: int
    step: Callable[[Sequence[Any], Any, Any], Any]


def _lstm_step(given: Sequence[Any], state: Any, product: Any) -> Any:
    c, h = state
    i, f, g, o = fnp.split(fnp.add(product, fnp.matmul(h, given[1])), 4, axis=-1)
    c = fnp.add(fnp.multiply(sigmoid(f), c), fnp.multiply(sigmoid(i), fnp.tanh(g)))
    return c, fnp.multiply(sigmoid(o), fnp.tanh(c))


def _gru_step(given: Sequence[Any], h: Any, product: Any) -> Any:
    r, z, n = fnp.split(product, 3, axis=-1)
    by_r, by_z, by_n = fnp.split(fnp.matmul(h, given[1]), 3, axis=-1)
    r, z = sigmoid(fnp.add(r, by_r)), sigmoid(fnp.add(z, by_z))
    n = fnp.tanh(fnp.add(n, fnp.multiply(r, fnp.add(by_n, given[3]))))
    return fnp.add(n, fnp.multiply(z, fnp.subtract(h, n)))


_LSTM = _Kind(
    {"w": "inputs 4·units", "u": "units 4·units", "b": "4·units"}, 4, 2, _lstm_step
)
_GRU = _Kind(
    {"w": "inputs 3·units", "u": "units 3·units", "b": "3·units", "c": "units"},
    3,
    1,
    _gru_step,
)


# -- weights and states ----------------------------------------------------------------


def _cell_init(
    name: str,
    kind: _Kind,
    key: Any,
    inputs: Any,
    units: Any,
    w_init: Initializer | None,
    u_init: Initializer | None,
    dtype: Any,
) -> Params:
    inputs, units = natural(name, "inputs", inputs), natural(name, "units", units)
    keys = random.split(key, 1 + kind.gates)
    if u_init is None:
        u_init = initializers.orthogonal()
    squares = [
        drawn(name, "u_init", u_init, one, (units, units), dtype) for one in keys[1:]
    ]
    made = {
        "w": drawn(
            name, "w_init", w_init, keys[0], (inputs, kind.gates * units), dtype
        ),
        "u": fnp.concatenate(squares, axis=1),
        "b": initializers.zeros(None, kind.gates * units, dtype),
    }
    if "c" in kind.axes:
        made["c"] = initializers.zeros(None, units, dtype)
    return made


def _layers_init(
    name: str,
    cell_init: Callable[..., Params],
    key: Any,
    inputs: int,
    units: int,
    layers: int,
    bidirectional: bool,
    options: dict[str, Any],
) -> list[Layer]:
    made: list[Layer] = []
    for one in random.split(key, natural(name, "layers", layers)):
        if bidirectional:
            made.append(
                {
                    way: cell_init(half, inputs, units, **options)
                    for way, half in zip(_WAYS, random.split(one), strict=True)
                }
            )
        else:
            made.append(cell_init(one, inputs, units, **options))
        inputs = units * (1 + bidirectional)
    return made


_WAYS = ("forward", "backward")


def _units(kind: _Kind, given: Sequence[Any]) -> int:
    units: int = typeof(given[1]).shape[0]
    return units


def _checked(name: str, kind: _Kind, params: Any) -> list[Any]:
    """Returns the weights of a cell."""
    given = weights(name, params, **kind.axes)
    units = _units(kind, given)
    wide = typeof(given[1])
    if wide.shape[1] != kind.gates * units:
        raise ShapeError(
            f'{name}: params["u"] must be [units, {kind.gates}·units], got {wide}'
        )
    if "c" in kind.axes:
        shaped(name, 'params["c"]', given[3], (units,), "floats")
    return given


def _cell_state(
    name: str, kind: _Kind, state: Any, shape: tuple[int, ...], dtype: Any
) -> Any:
    """Returns the state of a cell, of one shape and dtype; zeros for None."""
    if state is None:
        # Arrays of their own, so that a state can be donated.
        parts = [fnp.zeros(shape, dtype) for _ in range(kind.parts)]
    elif kind.parts == 1:
        parts = [state]
    elif not isinstance(state, tuple | list) or len(state) != kind.parts:
        raise ArgumentError(
            f"{name}: the state must be a pair (c, h), got {type(state).__name__}"
        )
    else:
        parts = list(state)
    if state is not None:
        for part in parts:
            shaped(name, "the state", part, shape, "floats")
        parts = [lax.convert_element_type(part, dtype) for part in parts]
    return parts[0] if kind.parts == 1 else tuple(parts)


def _cell(name: str, kind: _Kind, params: Any, state: Any, x: Any) -> Any:
    """One step."""
    given = _checked(name, kind, params)
    dtype = fnp.result_type(floats(name, "x", x, "inputs"), *given)
    product = _product(name, "x", given, x, dtype)
    shape = (*typeof(x).shape[:-1], _units(kind, given))
    start = _cell_state(name, kind, state, shape, dtype)
    given = [lax.convert_element_type(w, dtype) for w in given]
    state = kind.step(given, start, product)
    return state, state if kind.parts == 1 else state[-1]


def _product(name: str, what: str, given: Sequence[Any], x: Any, dtype: Any) -> Any:
    """Returns what the inputs add to the gates, of all steps."""
    inputs = typeof(given[0]).shape[0]
    if typeof(x).shape[-1] != inputs:
        raise ShapeError(
            f"{name}: {what} must have {inputs} features in its last axis, as the "
            f"weights {typeof(given[0])} take, not {typeof(x).shape[-1]}"
        )
    x, w, b = (lax.convert_element_type(a, dtype) for a in (x, given[0], given[2]))
    return fnp.add(fnp.matmul(x, w), b)


# -- over sequences --------------------------------------------------------------------


def _over_time(
    name: str,
    kind: _Kind,
    given: Sequence[Any],
    xs: Any,
    state: Any,
    mask: Any,
    reverse: bool,
    dtype: Any,
) -> Any:
    """Runs a cell over inputs [time, ..., inputs]."""
    products = _product(name, "xs", given, xs, dtype)
    shape = (*typeof(xs).shape[1:-1], _units(kind, given))
    start = _cell_state(name, kind, state, shape, dtype)
    given = [lax.convert_element_type(w, dtype) for w in given]

    def step(state: Any, slices: Any) -> Any:
        product, taken = slices
        new = kind.step(given, state, product)
        y = new if kind.parts == 1 else new[-1]
        if taken is not None:
            new = tree.map(lambda n, old: fnp.where(taken, n, old), new, state)
            y = fnp.where(taken, y, 0)
        return new, y

    return lax.scan(step, start, (products, mask), reverse=reverse)


def _layered(
    name: str,
    kind: _Kind,
    params: Any,
    state: Any,
    xs: Any,
    mask: Any,
    reverse: bool,
    time_major: bool,
    dropout_key: Any,
    dropout_rate: Any,
) -> tuple[list[Any], Array]:
    layers = _listed(name, "params", params)
    states = [None] * len(layers) if state is None else _listed(name, "state", state)
    if len(states) != len(layers):
        raise ArgumentError(
            f"{name}: the state has {len(states)} layers and the params {len(layers)}"
        )
    floats(name, "xs", xs, "time", "inputs")
    if mask is not None:
        shaped(name, "mask", mask, typeof(xs).shape[:-1], "bools")
        mask = mask if time_major else fnp.moveaxis(mask, -1, 0)
        mask = fnp.expand_dims(mask, -1)
    xs = xs if time_major else fnp.moveaxis(xs, -2, 0)
    keys: Iterable[Any] = [None] * len(layers)
    if dropout_key is not None:
        keys = random.split(dropout_key, len(layers))
    ends: list[Any] = []
    for number, (layer, start, key) in enumerate(
        zip(layers, states, keys, strict=True)
    ):
        if number and key is not None:
            xs = dropout(key, xs, dropout_rate)
        ways = _ways(name, layer, start)
        cells = [_checked(name, kind, cell) for cell, _ in ways]
        dtype = fnp.result_type(xs, *(w for cell in cells for w in cell))
        out = [
            _over_time(name, kind, cell, xs, begin, mask, reverse != bool(way), dtype)
            for way, (cell, (_, begin)) in enumerate(zip(cells, ways, strict=True))
        ]
        if len(ways) == 1:
            [(end, xs)] = out
        else:
            end = {way: last for way, (last, _) in zip(_WAYS, out, strict=True)}
            xs = fnp.concatenate([ys for _, ys in out], axis=-1)
        ends.append(end)
    return ends, xs if time_major else fnp.moveaxis(xs, 0, -2)


def _ways(name: str, layer: Any, state: Any) -> list[tuple[Any, Any]]:
    """Returns weights and state of a layer's cell, or of both its cells."""
    if not _is_both(layer):
        return [(layer, state)]
    if state is not None and not _is_both(state):
        raise ArgumentError(
            f'{name}: the state of a layer of both directions must have "forward" and '
            f'"backward", got {type(state).__name__}'
        )
    return [(layer[way], state and state[way]) for way in _WAYS]


def _is_both(value: Any) -> bool:
    return isinstance(value, Mapping) and set(_WAYS) <= set(value)


def _listed(name: str, what: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ArgumentError(
            f"{name}: {what} must be a list with an item for each layer"
            f"{' (None means zeros)' if what == 'state' else ''}, got {shown(value)}"
        )
    return list(value)


def _layered_state(
    name: str, kind: _Kind, params: Any, batch: Any, dtype: Any
) -> list[Any]:
    lengths = shape_or_length(name, batch)

    def zeros(cell: Any) -> Any:
        given = _checked(name, kind, cell)
        chosen = fnp.result_type(*given) if dtype is None else dtypes.dtype(dtype)
        shape = (*lengths, _units(kind, given))
        return _cell_state(name, kind, None, shape, chosen)

    def of(layer: Any) -> Any:
        if _is_both(layer):
            return {way: zeros(layer[way]) for way in _WAYS}
        return zeros(layer)

    return [of(layer) for layer in _listed(name, "params", params)]


# -- public ----------------------------------------------------------------------------

_init_docs = shared("""
    Args:
      key: one key.
      inputs: number of input features.
      units: number of output features.
      layers: how many, each over the outputs of the one before.
      bidirectional: whether each layer reads in both directions; outputs are then of
        length 2·units, those of the forward cell first.
      w_init: initializer of `w`; None means `lecun_normal`.
      u_init: initializer of each gate's square in `u`; None means `orthogonal`.
      dtype: dtype of the weights; None means the default float.

    Raises:
      ArgumentError: a length is not a positive integer, or `key` is not a key.
""")

_cell_docs = shared("""
    Args:
      params: weights, as `{name}_init` makes them.
      x: float[..., inputs].

    Raises:
      ArgumentError: the params are not a dict of the weights, or `x` is not an array.
      DtypeError: an argument has no floats.
      ShapeError: the shapes are incompatible.
""")

_layer_docs = shared("""
    Args:
      params: list of layers, as `{name}_init` makes it.
      state: where the sequences begin, a list like the params; None means zeros.
      xs: float[..., time, inputs]; with `time_major` float[time, ..., inputs].
      mask: bool, of the shape of `xs` without its last axis: False where a sequence has
        no element, as past its end. The state does not change there, and the output
        is 0.
      reverse: whether to read from the end; outputs stay in place. (Layers of both
        directions change them.)
      time_major: whether time is the first axis, as `lax.scan` has it (no transposition
        is needed then), instead of the last but one.
      dropout_key: key for dropout between the layers; None means none.
      dropout_rate: share of the outputs between layers that is dropped.

    Returns:
      The states after the last step, built like the params, and the outputs: the shape
      of `xs` with `units` (2·units) in place of `inputs`. All are of the dtype that
      `xs` and the weights promote to.

    Raises:
      ArgumentError: params or state are not built as described.
      DtypeError: an argument has no floats, or the mask is not bool.
      ShapeError: the shapes are incompatible.
""")

_state_docs = shared("""
    Args:
      params: list of layers.
      batch: the shape of the sequences without time and features; an integer or a
        sequence of them.
      dtype: dtype of the state; None means that of the weights.

    Returns:
      A list like the params.

    Raises:
      ArgumentError: the params are not such a list, or the shape is not a shape.
""")


@_init_docs
def lstm_cell_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    *,
    forget_bias: float | ArrayLike = 1.0,
    w_init: Initializer | None = None,
    u_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> Params:
    """Makes the weights of a cell with long short-term memory.

    Args:
      forget_bias: first value of the forget gates' biases; the others are 0.

    Returns:
      A dict of `w: [inputs, 4·units]`, `u: [units, 4·units]` and `b: [4·units]`; the
      four parts are those of i, f, g and o.

    Example:
      >>> params = nn.lstm_cell_init(random.key(0), 3, 5)
      >>> {name: w.shape for name, w in params.items()}
      {'w': (3, 20), 'u': (5, 20), 'b': (20,)}

    Source: the bias of 1: Jozefowicz, Zaremba and Sutskever 2015.
    """
    made = _cell_init(
        "lstm_cell_init", _LSTM, key, inputs, units, w_init, u_init, dtype
    )
    made["b"] = made["b"].at[units : 2 * units].set(forget_bias)
    return made


@_cell_docs
def lstm_cell(
    params: Mapping[str, ArrayLike], state: tuple[Any, Any] | None, x: ArrayLike
) -> tuple[tuple[Array, Array], Array]:
    r"""Makes one step of a cell with long short-term memory.

    .. math::
       i, f, g, o &= x W + h U + b \\
       c' &= \sigma(f)\, c + \sigma(i) \tanh(g) \\
       h' &= \sigma(o) \tanh(c')

    Args:
      state: the pair (c, h), each float[..., units]; None means zeros.

    Returns:
      `((c', h'), h')`, of the dtype that `x` and the weights promote to.

    Example:
      >>> params = nn.lstm_cell_init(random.key(0), 3, 5)
      >>> (c, h), y = nn.lstm_cell(params, None, fnp.ones((2, 3)))
      >>> c.shape, h.shape, y.shape
      ((2, 5), (2, 5), (2, 5))

    Source: Hochreiter and Schmidhuber 1997; forget gates: Gers et al. 2000.
    """
    out: tuple[tuple[Array, Array], Array] = _cell("lstm_cell", _LSTM, params, state, x)
    return out


@_init_docs
def lstm_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    *,
    layers: int = 1,
    bidirectional: bool = False,
    forget_bias: float | ArrayLike = 1.0,
    w_init: Initializer | None = None,
    u_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> list[Layer]:
    """Makes the weights of `lstm`: layers with long short-term memory.

    Args:
      forget_bias: first value of the forget gates' biases; the others are 0.

    Returns:
      A list of as many layers, each what `lstm_cell_init` makes or, if bidirectional, a
      dict of two such, `"forward"` and `"backward"`.

    Example:
      >>> len(nn.lstm_init(random.key(0), 3, 5, layers=2))
      2
    """
    options = {
        "forget_bias": forget_bias,
        "w_init": w_init,
        "u_init": u_init,
        "dtype": dtype,
    }
    return _layers_init(
        "lstm_init", lstm_cell_init, key, inputs, units, layers, bidirectional, options
    )


@_state_docs
def lstm_state(
    params: Sequence[Mapping[str, Any]],
    batch: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> list[Any]:
    """Makes the state of `lstm` before the first step: zeros.

    Example:
      >>> params = nn.lstm_init(random.key(0), 3, 5)
      >>> [(c.shape, h.shape) for c, h in nn.lstm_state(params, 2)]
      [((2, 5), (2, 5))]
    """
    return _layered_state("lstm_state", _LSTM, params, batch, dtype)


@_layer_docs
def lstm(
    params: Sequence[Mapping[str, Any]],
    state: Sequence[Any] | None,
    xs: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    reverse: bool = False,
    time_major: bool = False,
    dropout_key: ArrayLike | None = None,
    dropout_rate: float | ArrayLike = 0.5,
) -> tuple[list[Any], Array]:
    """Runs layers with long short-term memory over sequences.

    Example:
      >>> params = nn.lstm_init(random.key(0), 3, 5, bidirectional=True)
      >>> state, ys = nn.lstm(params, None, fnp.ones((2, 7, 3)))
      >>> ys.shape
      (2, 7, 10)

    Source: the cell is `lstm_cell`; both directions: Schuster and Paliwal 1997; dropout
    between layers only: Zaremba, Sutskever and Vinyals 2014.
    """
    return _layered(
        "lstm", _LSTM, params, state, xs, mask, reverse, time_major,
        dropout_key, dropout_rate,
    )  # fmt: skip


@_init_docs
def gru_cell_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    *,
    w_init: Initializer | None = None,
    u_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> Params:
    """Makes the weights of a gated recurrent unit.

    Returns:
      A dict of `w: [inputs, 3·units]`, `u: [units, 3·units]`, `b: [3·units]`, whose
      three parts are those of r, z and n, and `c: [units]`.

    Example:
      >>> params = nn.gru_cell_init(random.key(0), 3, 5)
      >>> {name: w.shape for name, w in params.items()}
      {'w': (3, 15), 'u': (5, 15), 'b': (15,), 'c': (5,)}
    """
    return _cell_init("gru_cell_init", _GRU, key, inputs, units, w_init, u_init, dtype)


@_cell_docs
def gru_cell(
    params: Mapping[str, ArrayLike], state: ArrayLike | None, x: ArrayLike
) -> tuple[Array, Array]:
    r"""Makes one step of a gated recurrent unit.

    .. math::
       r &= \sigma(x W_r + h U_r + b_r) \\
       z &= \sigma(x W_z + h U_z + b_z) \\
       n &= \tanh(x W_n + b_n + r\, (h U_n + c)) \\
       h' &= n + z\, (h - n)

    Args:
      state: h: float[..., units]; None means zeros.

    Returns:
      `(h', h')`, of the dtype that `x` and the weights promote to.

    Example:
      >>> params = nn.gru_cell_init(random.key(0), 3, 5)
      >>> h, y = nn.gru_cell(params, None, fnp.ones((2, 3)))
      >>> h.shape, y.shape
      ((2, 5), (2, 5))

    Source: Cho et al. 2014, in the form that applies r after the product, so that all
    products are one (as cuDNN and PyTorch do).
    """
    out: tuple[Array, Array] = _cell("gru_cell", _GRU, params, state, x)
    return out


@_init_docs
def gru_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    *,
    layers: int = 1,
    bidirectional: bool = False,
    w_init: Initializer | None = None,
    u_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> list[Layer]:
    """Makes the weights of `gru`: layers of gated recurrent units.

    Returns:
      A list of as many layers, each what `gru_cell_init` makes or, if bidirectional, a
      dict of two such, `"forward"` and `"backward"`.

    Example:
      >>> len(nn.gru_init(random.key(0), 3, 5, layers=2))
      2
    """
    options = {"w_init": w_init, "u_init": u_init, "dtype": dtype}
    return _layers_init(
        "gru_init", gru_cell_init, key, inputs, units, layers, bidirectional, options
    )


@_state_docs
def gru_state(
    params: Sequence[Mapping[str, Any]],
    batch: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> list[Any]:
    """Makes the state of `gru` before the first step: zeros.

    Example:
      >>> params = nn.gru_init(random.key(0), 3, 5)
      >>> [h.shape for h in nn.gru_state(params, 2)]
      [(2, 5)]
    """
    return _layered_state("gru_state", _GRU, params, batch, dtype)


@_layer_docs
def gru(
    params: Sequence[Mapping[str, Any]],
    state: Sequence[Any] | None,
    xs: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    reverse: bool = False,
    time_major: bool = False,
    dropout_key: ArrayLike | None = None,
    dropout_rate: float | ArrayLike = 0.5,
) -> tuple[list[Any], Array]:
    """Runs layers of gated recurrent units over sequences.

    Example:
      >>> params = nn.gru_init(random.key(0), 3, 5)
      >>> state, ys = nn.gru(params, None, fnp.ones((2, 7, 3)))
      >>> ys.shape, bool((state[0] == ys[:, -1]).all())
      ((2, 7, 5), True)

    Source: the cell is `gru_cell`.
    """
    return _layered(
        "gru", _GRU, params, state, xs, mask, reverse, time_major,
        dropout_key, dropout_rate,
    )  # fmt: skip
