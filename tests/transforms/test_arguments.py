"""Names, positions and labels of arguments."""

import functools
import re

import pytest

import fxflow
from fxflow.core import tree
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import (
    FlatFunction,
    as_indices,
    as_names,
    joined,
    normalize_indices,
    pick,
    require_axes,
    with_fixed,
    without,
)


def fun(a, b=1, *rest, k=2):
    return a


def test_transformed_functions_say_what_they_are():
    twice = fxflow.vmap(fxflow.grad(lambda x: x * fun(x)))
    assert re.fullmatch(r"vmap\(grad\(<lambda> at .*\.py:\d+\)\)", twice.__name__)
    graph = fxflow.make_graph(fxflow.grad(lambda x: fun(x)))(1.0)
    assert str(graph).startswith("graph grad(lambda_)(a: f32[]")
    assert fxflow.grad(fun).__doc__ == fun.__doc__


def test_positions_and_names_are_normalized():
    assert as_indices(None, "argnums") == ()
    assert as_indices(2, "argnums") == (2,)
    assert as_indices([0, 2], "argnums") == (0, 2)
    assert normalize_indices((-1,), 3, "argnums", "f") == (2,)
    assert as_names("a", "names") == ("a",)
    for bad in ("x", 1.5, [None]):
        with pytest.raises(ArgumentError):
            as_indices(bad, "argnums")
    with pytest.raises(ArgumentError, match="argument names"):
        as_names([1], "names")
    with pytest.raises(ArgumentError, match="out of range"):
        normalize_indices((3,), 3, "argnums", "f")


def test_functions_that_a_call_does_not_run():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    async def both(x):
        yield x

    for transform in (fxflow.jit, fxflow.vmap, fxflow.grad, fxflow.checkpoint):
        for bad, words in [
            (generator, "the generator function generator: return a list"),
            (functools.partial(generator, 1), "generator function generator"),
            (both, "generator function both"),
            (coroutine, "the coroutine function coroutine"),
            (staticmethod(lambda x: x), "got a staticmethod: put @staticmethod out"),
            (classmethod(lambda x: x), "got a classmethod"),
        ]:
            with pytest.raises(ArgumentError, match=words):
                transform(bad)


def test_axes_that_are_not_integers_are_refused():
    require_axes((0, None, {"a": -1}), "in_axes")
    for bad in (False, (0, True), 1.0, "a"):
        with pytest.raises(ArgumentError, match="in_axes must be an int, None, or a"):
            require_axes(bad, "in_axes")
    for transform in (fxflow.vmap, fxflow.pmap):
        with pytest.raises(ArgumentError, match=r"in_axes must be .* got False"):
            transform(abs, in_axes=False)
        with pytest.raises(ArgumentError, match=r"out_axes must be .* got True"):
            transform(abs, out_axes=(0, True))


def test_result_and_aux():
    flat = FlatFunction(
        lambda d: ({"y": d["a"]}, [d["b"]]),
        tree.flatten(({"a": 1, "b": 2},))[1],
        "f",
        has_aux=True,
    )
    outs = flat(1.0, 2.0)
    assert outs == [1.0, 2.0]
    assert flat.result(outs) == {"y": 1.0} and flat.aux(outs) == [2.0]


def test_errors_name_the_leaf():
    one = tree.flatten((1,))[1]
    with pytest.raises(ArgumentError, match=r"f returned at \['k'\]\[0\]"):
        FlatFunction(lambda x: {"k": ["text"]}, one, "f")(1.0)
    with pytest.raises(ArgumentError, match="pair"):
        FlatFunction(lambda x: x, one, "f", has_aux=True)(1.0)


def test_fixed_arguments():
    f = with_fixed(lambda *args: args, (0, 2), ("a", "c"))
    assert f("b", "d") == ("a", "b", "c", "d")
    assert joined((1,), ("y",), ("x", "z")) == ["x", "y", "z"]
    chosen, put_back = pick(("a", "b", "c"), (2, 0))
    assert chosen == ["c", "a"] and put_back(["z", "x"]) == ["x", "b", "z"]
    assert without(("a", "b", "c"), (1,)) == ("a", "c")
