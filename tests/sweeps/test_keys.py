"""Arrays of keys through every function and transformation.

A key is two words of 32 bits, so an array of keys holds what an array of uint64 holds:
whatever only moves elements must do the same to both. Whatever computes with numbers
must refuse keys, with an error of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax, random, tree
from fxflow.core.arrays import dtypes
from fxflow.errors import FxflowError
from tests.sweeps.catalogue import Call, Operand, catalogue
from tests.sweeps.results import Refused, attempt
from tests.sweeps.sampling import sample

Shape = tuple[int, ...]


def words(shape: Shape, seed: int = 0) -> Any:
    """Numbers that fill 64 bits, as keys do."""
    drawn = np.random.default_rng(seed).integers(0, 2**64 - 1, shape, np.uint64)
    return np.asarray(drawn, np.uint64)


def as_keys(numbers: Any) -> Any:
    pairs = np.ascontiguousarray(numbers)[..., None].view(np.uint32)
    return random.wrap_key_data(pairs.reshape(*np.shape(numbers), 2))


def as_numbers(value: Any) -> Any:
    """Returns a result with its keys seen as numbers."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, fxflow.Array) or not dtypes.is_key(leaf.dtype):
            return leaf
        data = np.ascontiguousarray(random.key_data(leaf))
        return data.view(np.uint64)[..., 0]

    return tree.map(one, value)


def same(got: Any, want: Any) -> bool:
    got_leaves, want_leaves = tree.leaves(as_numbers(got)), tree.leaves(want)
    return len(got_leaves) == len(want_leaves) and all(
        np.shape(g) == np.shape(w) and bool(np.all(np.asarray(g) == np.asarray(w)))
        for g, w in zip(got_leaves, want_leaves, strict=True)
    )


# -- the catalogue ---------------------------------------------------------------------

# `pad` and `select` put zeros beside, unless told to put keys.
_STRUCTURAL = """
append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to
column_stack compress concat concatenate copy delete diagonal dsplit dstack expand_dims
extract flip fliplr flipud hsplit hstack insert matrix_transpose moveaxis permute_dims
put put_along_axis ravel repeat reshape resize roll rollaxis rot90 split squeeze stack
swapaxes take take_along_axis tile transpose unstack vsplit vstack where choose equal
not_equal array_equal array_equiv shape ndim size asarray array full place broadcast
broadcast_in_dim broadcast_like broadcast_to_rank collapse index_in_dim rev slice
slice_in_dim dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim
dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim gather
scatter select_n eq ne stop_gradient optimization_barrier iterable isscalar
"""
STRUCTURAL = set(_STRUCTURAL.split())
# What has a result for other reasons than that it moves keys.
OTHER = {
    "sort_key_val": "sorts by numbers: test_sorting_by_numbers",
    "full_like": "fills with what is not an operand",
    "result_type": "a dtype",
    "iscomplexobj": "keys are not complex",
    "isrealobj": "keys are not complex",
    "array_repr": "text",
    "array_str": "text",
    "identity": "returns its argument",
    "isclose": "keys are close if they are equal",
    "allclose": "keys are close if they are equal",
    "zeros_like": "keys of zeros",
    "ones_like": "keys of ones",
    "empty_like": "keys of zeros",
    "astype": "the dtype is the catalogue's",
    "permutation": "moves keys by random numbers",
}


def _takes_anything(operand: Operand) -> bool:
    return set(operand.kinds) == set("biufc") and operand.make is None


def _candidates() -> list[tuple[Call, tuple[Shape, ...]]]:
    found = []
    for call in catalogue():
        if any(map(_takes_anything, call.operands)):
            ordinary = tuple(o.shape for o in call.operands)
            found.append((call, ordinary))
            if ordinary[0]:
                length = ordinary[0][0]
                empty = tuple(
                    tuple(0 if n == length else n for n in s) for s in ordinary
                )
                found.append((call, empty))
    return found


def _label(case: Any) -> str:
    call, shapes = case
    return f"{call}-{'-'.join('x'.join(map(str, s)) or '()' for s in shapes)}"


def _operands(call: Call, shapes: tuple[Shape, ...], make: Any) -> list[Any]:
    """Returns operands, those that may be anything made by `make` of numbers."""
    rng = call.rng()
    return [
        make(words(shape, i))
        if _takes_anything(operand)
        else replace(operand, shape=shape).draw(rng)
        for i, (operand, shape) in enumerate(zip(call.operands, shapes, strict=True))
    ]


def _outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return attempt(function, *args)
    except AssertionError as error:
        return error


@pytest.mark.parametrize("case", sample(_candidates(), 150, of="keys"), ids=_label)
def test_functions_move_keys_like_numbers_or_refuse_them(
    case: tuple[Call, tuple[Shape, ...]],
) -> None:
    call, shapes = case
    name = call.name.rpartition(".")[2]
    numbers = _operands(call, shapes, lambda w: fnp.asarray(w, "uint64"))
    keys = _operands(call, shapes, as_keys)
    want = _outcome(call.run, *numbers)
    got = _outcome(call.run, *keys)
    assert not isinstance(got, AssertionError), got
    # With one argument, `where` asks what is true.
    of_numbers = call.note == "places" or call.name.startswith("image.")
    structural = name in STRUCTURAL and not of_numbers
    if structural and not isinstance(want, Refused | AssertionError):
        assert not isinstance(got, Refused), f"refused: {got}"
    if isinstance(got, Refused) or name in OTHER:
        return
    assert same(got, want), f"{got} != {want}"
    if not call.traceable or not all(hasattr(g, "dtype") for g in tree.leaves(got)):
        return
    assert same(fxflow.jit(call.run)(*keys), want)
    rows = [fnp.stack([k, k]) for k in keys]
    for leaf, one in zip(
        tree.leaves(fxflow.vmap(call.run)(*rows)), tree.leaves(want), strict=True
    ):
        assert same(leaf, np.stack([one, one]))


# -- what the catalogue has not --------------------------------------------------------

INDICES = [
    0,
    -1,
    np.s_[1:],
    np.s_[::-1],
    np.s_[::2],
    np.s_[None],
    np.s_[...],
    np.s_[:0],
    (np.array([2, 0, 2]),),
    (np.array([], np.int32),),
    ([0, 2],),
    np.array([True, False, True]),
    np.array([[0, 1], [2, 0]]),
]
MANY = [
    np.s_[1, 2],
    np.s_[:, 1],
    np.s_[..., -1],
    np.s_[1, [0, 2]],
    np.s_[:, None, ::-1],
    (np.array([0, 1]), np.array([2, 0])),
    np.s_[1:, 1:],
    (np.array([[True, False, True], [False, False, True]]),),
]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("shape", "index"),
    [((3,), i) for i in INDICES] + [((2, 3), i) for i in MANY],
    ids=str,
)
def test_indexing(shape: Shape, index: Any, jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    numbers = words(shape)
    keys = as_keys(numbers)
    want = numbers[index]
    assert same(run(lambda k: k[index])(keys), want)
    assert same(run(lambda k: k.at[index].get())(keys), want)
    new = words(want.shape, 1)
    changed = numbers.copy()
    changed[index] = new
    assert same(run(lambda k, n: k.at[index].set(n))(keys, as_keys(new)), changed)
    changed[index] = new.ravel()[:1].sum() if new.size else 0
    if new.size:
        one = as_keys(new.ravel()[0])
        changed[index] = new.ravel()[0]
        assert same(run(lambda k, n: k.at[index].set(n))(keys, one), changed)


@pytest.mark.parametrize("jitted", [False, True])
def test_indices_that_are_traced(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    numbers = words((4, 3))
    keys = as_keys(numbers)
    assert same(run(lambda k, i: k[i])(keys, 2), numbers[2])
    assert same(run(lambda k, i: k[i, 1])(keys, 2), numbers[2, 1])
    new = as_keys(words((3,), 1))
    changed = numbers.copy()
    changed[2] = words((3,), 1)
    assert same(run(lambda k, i: k.at[i].set(new))(keys, 2), changed)
    places = np.array([3, 9])
    for index in (places, 9):  # what is not there is the greatest key
        filled = run(lambda k, i=index: k.at[i].get(mode="fill"))(keys[:, 0])
        want = np.where(np.less(index, 4), numbers[3, 0], np.uint64(2**64 - 1))
        assert same(filled, want)
        one = run(lambda k, i=index: k.at[i].get(mode="fill", fill_value=1))(keys[:, 0])
        want = np.where(np.less(index, 4), numbers[3, 0], np.uint64(2**32 + 1))
        assert same(one, want)
    clipped = run(lambda k: k.at[places].get(mode="clip"))(keys)
    assert same(clipped, numbers[[3, 3]])
    dropped = run(lambda k: k.at[9].set(new, mode="drop"))(keys)
    assert same(dropped, numbers)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_control_flow(shape: Shape, jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    a, b = words(shape), words(shape, 1)
    x, y = as_keys(a), as_keys(b)
    swap = lambda x, y: (y, x)
    keep = lambda x, y: (x, y)
    for p in (True, False):
        got = run(lambda p, x, y: lax.cond(p, swap, keep, x, y))(p, x, y)
        assert same(got, (b, a) if p else (a, b))
        assert same(run(lambda p, x, y: fnp.where(p, x, y))(p, x, y), a if p else b)
    got = run(lambda i, x, y: lax.switch(i, [keep, swap], x, y))(1, x, y)
    assert same(got, (b, a))
    got = run(lambda x, y: lax.fori_loop(0, 3, lambda i, c: swap(*c), (x, y)))(x, y)
    assert same(got, (b, a))
    got = run(
        lambda x, y: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1]), (0, x, y)
        )
    )(x, y)
    assert same(got[1:], (b, a))
    rows = fnp.stack([x, y, x])
    carry, seen = run(lambda x, r: lax.scan(lambda c, k: (k, c), x, r))(y, rows)
    assert same(carry, a) and same(seen, np.stack([b, a, b]))
    assert same(run(lambda r: lax.map(lambda k: k, r))(rows), np.stack([a, b, a]))
    mapped = lambda p: fxflow.vmap(lambda p, x: lax.cond(p, keep, swap, x, y))(p, rows)
    first, _ = run(mapped)(np.array([True, False, True]))
    assert same(first, np.stack([a, b, a]))


@pytest.mark.parametrize("jitted", [False, True])
def test_sorting_by_numbers(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    numbers, by = words((3, 4)), np.random.default_rng(0).normal(size=(3, 4))
    keys, by = as_keys(numbers), by.astype(np.float32)
    for axis in (0, 1):
        want = np.take_along_axis(numbers, by.argsort(axis), axis)
        first, got = run(lambda b, k, d=axis: lax.sort_key_val(b, k, d))(by, keys)
        assert same(got, want) and same(first, np.sort(by, axis))
        _, got, more = run(lambda b, k, d=axis: lax.sort((b, k, b), d))(by, keys)
        assert same(got, want) and same(more, np.sort(by, axis))


@pytest.mark.parametrize("jitted", [False, True])
def test_keys_that_stand_beside(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    numbers = words((3,))
    keys, one = as_keys(numbers), as_keys(words((), 1))
    padded = run(lambda k, v: fnp.pad(k, (1, 2), constant_values=v))(keys, one)
    assert same(padded, np.pad(numbers, (1, 2), constant_values=words((), 1)))
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        got = run(lambda k, m=mode: fnp.pad(k, 2, mode=m))(keys)
        assert same(got, np.pad(numbers, 2, mode=mode))
    mask = np.array([True, False, True])
    chosen = run(lambda m, k, v: fnp.select([m], [k], v))(mask, keys, one)
    assert same(chosen, np.where(mask, numbers, words((), 1)))
    pieces = run(lambda k, v: fnp.piecewise(k, [mask], [v, lambda k: k]))
    assert same(pieces(keys, one), np.where(mask, words((), 1), numbers))


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_transformations_keep_keys(shape: Shape) -> None:
    numbers = words(shape)
    keys = as_keys(numbers)
    assert same(fxflow.vmap(lambda k: k)(keys), numbers)
    for axis in range(len(shape)):
        got = fxflow.vmap(lambda k: k, in_axes=axis, out_axes=axis)(keys)
        assert same(got, numbers)
    assert same(fxflow.vmap(lambda k, x: k, (0, None))(keys, 1.0), numbers)
    repeated = fxflow.vmap(lambda k, x: k, (None, 0))(keys, np.ones(2))
    assert same(repeated, np.stack([numbers] * 2))
    assert same(fxflow.jit(lambda t: t)({"a": keys, "b": (keys,)})["b"][0], numbers)
    assert same(fxflow.checkpoint(lambda k: k[::-1])(keys), numbers[::-1])
    draw = lambda x, k: (x * random.normal(k.reshape(-1)[0], (2,))).sum()
    slope = fxflow.grad(draw)(1.0, keys)
    assert float(slope) == pytest.approx(float(draw(1.0, keys)), rel=1e-5)
    assert float(fxflow.jit(fxflow.grad(draw))(1.0, keys)) == pytest.approx(
        float(slope), rel=1e-5
    )
    _, back = fxflow.vjp(lambda x: draw(x, keys), 1.0)
    assert np.isfinite(back(fnp.ones(()))[0])
    value, tangent = fxflow.jvp(lambda x: draw(x, keys), (1.0,), (1.0,))
    assert value == tangent
    shapes = fxflow.eval_shape(lambda k: k[0], keys)
    assert shapes.dtype == keys.dtype and shapes.shape == shape[1:]


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y"), P(("x", "y"))])
def test_divided_keys_move_like_numbers(spec: Any) -> None:
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))
    where = fxflow.NamedSharding(mesh, spec)
    numbers = words((8, 2))
    keys = fxflow.device_put(as_keys(numbers), where)
    assert keys.sharding.is_equivalent_to(where, 2) and same(keys, numbers)
    assert same(fxflow.jit(lambda k: k[::-1].T)(keys), numbers[::-1].T)
    assert same(keys[3], numbers[3]) and same(keys[:, 1], numbers[:, 1])
    assert same(keys == keys[0], numbers == numbers[0])
    assert same(fnp.concatenate([keys, keys]), np.concatenate([numbers] * 2))
    turned = fxflow.shard_map(
        lambda k: fnp.flip(k, 0), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    want = numbers.reshape(4, 2, 2)[:, ::-1].reshape(8, 2)
    assert same(turned(keys), want) and same(fxflow.jit(turned)(keys), want)
    moved = fxflow.shard_map(
        lambda k: (
            lax.ppermute(k, "x", [(i, (i + 1) % 4) for i in range(4)]),
            lax.all_gather(k, "x", tiled=True)[:2],
        ),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    first, second = moved(keys)
    assert same(first, np.roll(numbers, 2, 0))
    assert same(second, np.concatenate([numbers[:2]] * 4))
    back = fxflow.device_put(keys, fxflow.devices()[0])
    assert same(back, numbers)
    for shard in keys.addressable_shards:
        assert same(shard.data, numbers[shard.index])


def test_pmap() -> None:
    numbers = words((8, 3))
    keys = as_keys(numbers)
    assert same(fxflow.pmap(lambda k: k[::-1])(keys), numbers[:, ::-1])
    assert same(fxflow.pmap(lambda k, x: k, in_axes=(0, None))(keys, 1), numbers)
    gathered = fxflow.pmap(lambda k: lax.all_gather(k, "i")[:, 0], axis_name="i")(keys)
    assert same(gathered, np.stack([numbers[:, 0]] * 8))
    drawn = fxflow.pmap(lambda k: random.uniform(k[0]))(keys)
    np.testing.assert_array_equal(drawn, fxflow.vmap(random.uniform)(keys[:, 0]))


def test_as_objects() -> None:
    import copy
    import pickle

    numbers = words((2, 3))
    keys = as_keys(numbers)
    for made in (
        copy.copy(keys),
        copy.deepcopy(keys),
        pickle.loads(pickle.dumps(keys)),
        tree.map(lambda k: k, {"a": keys})["a"],
        fxflow.device_get(keys),
        keys.block_until_ready(),
        keys.copy(),
        keys.reshape(3, 2).reshape(2, 3),
        keys.T.T,
        keys.flatten().reshape(keys.shape),
        keys.astype(keys.dtype),
        fnp.array([list(row) for row in keys]),
    ):
        assert same(made, numbers)
    assert len(keys) == 2 and len(list(keys)) == 2
    assert same(list(keys)[1], numbers[1])
    for text in (repr(keys), str(keys), f"{keys}"):
        assert "key<fry>[2,3]" in text
    assert keys.nbytes == numbers.nbytes and keys.size == 6 and keys.itemsize == 8


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift lt le gt ge"
_METHODS = (
    "__neg__ __abs__ __invert__ sum prod max min mean std var any all argmax argmin "
    "argsort sort cumsum cumprod round nonzero conj trace ptp"
)
REFUSED: dict[str, Callable[[Any], Any]] = {
    **{
        name: (lambda k, name=name: getattr(k, f"__{name}__")(k))
        for name in _OPERATORS.split()
    },
    **{name: (lambda k, name=name: getattr(k, name)()) for name in _METHODS.split()},
    "sort": fnp.sort,
    "lax.sort": lax.sort,
    "unique": fnp.unique,
    "bool": lambda k: bool(k[0]),
    "int": lambda k: int(k[0]),
    "float": lambda k: float(k[0]),
    "if": lambda k: 1 if k[0] else 2,
    "item": lambda k: k[0].item(),
    "tolist": lambda k: k.tolist(),
    "tobytes": lambda k: k.tobytes(),
    "np.asarray": np.asarray,
    "as index": lambda k: fnp.arange(3)[k],
    "as integer": lambda k: fnp.arange(3)[k[0]],
    "with a number": lambda k: k + 1,
    "equal to a number": lambda k: fnp.equal(k, 1),
    "beside numbers": lambda k: fnp.concatenate([k, fnp.ones(3)]),
    "where": lambda k: fnp.where(True, k, 0),
    "as condition": lambda k: fnp.where(k, 1, 0),
    "set a number": lambda k: k.at[0].set(1),
    "into numbers": lambda k: fnp.zeros(3).at[0].set(k[0]),
    "add": lambda k: k.at[0].add(k[0]),
    "multiply": lambda k: k.at[0].multiply(k[0]),
    "astype": lambda k: k.astype("uint32"),
    "view": lambda k: k.view("uint32"),
    "psum": lambda k: fxflow.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(k),
    "while": lambda k: lax.while_loop(lambda c: c, lambda c: c, k[0]),
    "cond": lambda k: lax.cond(k[0], lambda: 1, lambda: 2),
    "grad": lambda k: fxflow.grad(lambda x: x)(k[0]),
    "carry": lambda k: lax.scan(lambda c, x: (1.0, x), k[0], k),
    "length": lambda k: fnp.zeros(k[0]),
    "normal": lambda k: random.normal(k),
    "seed": lambda k: random.key(k[0]),
    "interp": lambda k: fnp.interp(0.5, k, fnp.ones(3)),
    "pad": lambda k: fnp.pad(k, 1, mode="mean"),
    "searchsorted": lambda k: fnp.searchsorted(k, k[0]),
    "histogram": fnp.histogram,
    "linspace": lambda k: fnp.linspace(k[0], k[1]),
    "einsum": lambda k: fnp.einsum("i,i", k, k),
    "in": lambda k: 1 in k,
    "choose": lambda k: fnp.choose(k, [fnp.ones(3)] * 2),
    "reduce": lambda k: lax.reduce(k, k[0], lambda a, b: a, (0,)),
    "reduce_window": lambda k: lax.reduce_window(k, k[0], lambda a, b: a, (2,)),
    "isnan": fnp.isnan,
    "real": fnp.real,
    "imag": fnp.imag,
    "nan_to_num": fnp.nan_to_num,
    "count_nonzero": fnp.count_nonzero,
    "diag": fnp.diag,
    "tril": lambda k: fnp.tril(k[None]),
    "fill": lambda k: k.at[9].get(mode="fill", fill_value=k[0]),
    "polyder": fnp.polyder,
    "lax.argsort": lax.argsort,
    "dlpack": lambda k: k.__dlpack__(),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_what_computes_refuses(name: str, jitted: bool) -> None:
    function = REFUSED[name]
    keys = random.split(random.key(0), 3)
    with pytest.raises((FxflowError, BufferError)):
        (fxflow.jit(function) if jitted else function)(keys)
