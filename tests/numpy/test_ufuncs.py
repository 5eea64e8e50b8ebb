"""How ufuncs are called."""

import pickle

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit
from fxflow.core import caches
from fxflow.errors import ArgumentError


def test_what_a_ufunc_knows() -> None:
    assert isinstance(fnp.add, fnp.ufunc)
    assert (fnp.add.nin, fnp.add.nout, fnp.add.nargs) == (2, 1, 3)
    assert fnp.add.identity == 0 and fnp.maximum.identity is None
    for name in ("hypot", "logaddexp", "logical_and", "multiply", "subtract"):
        assert getattr(fnp, name).identity == getattr(np, name).identity, name
    assert fnp.sin.nin == 1 and fnp.divmod.nout == 2
    assert repr(fnp.add) == "<ufunc 'add'>" and fnp.add.__name__ == "add"
    assert "Sum" in fnp.add.__doc__ and "Source: `numpy.add`" in fnp.add.__doc__


def test_all_numbers_of_a_type_share_a_plan() -> None:
    x = fnp.ones(17)
    assert (x * 2.5).tolist() == [2.5] * 17
    known = caches.sizes()["eager functions"]
    for n in (0.5, 7.0, np.inf):
        assert (x * n).tolist() == [n] * 17
    assert caches.sizes()["eager functions"] == known


def test_no_gradient_is_lost_in_plans() -> None:
    assert float(fxflow.grad(lambda x: (x * 2.5 + x * x)[()])(3.0)) == 8.5


def test_options_are_honoured() -> None:
    x = fnp.ones(3)
    assert (x + 1).tolist() == [2, 2, 2]
    with fxflow.config.override(eager="xla"):
        assert (x + 1).tolist() == [2, 2, 2]
    with fxflow.config.override(debug_nans=True), pytest.raises(FloatingPointError):
        fnp.log(-x)
    assert np.isnan(np.asarray(fnp.log(-x))).all()


def test_numbers_are_signed_zeros_and_nans() -> None:
    x = fnp.zeros(1)
    for function in (lambda a: a * -0.0, fxflow.jit(lambda a: a * -0.0)):
        assert np.signbit(np.asarray(function(x + 1)))[0]
    both = fxflow.jit(lambda a: (a + 0.0, a * -0.0, a * 0.0))(x + 1)
    assert [bool(np.signbit(np.asarray(b))[0]) for b in both] == [False, True, False]


def test_too_few_arguments_are_refused() -> None:
    three = fnp.frompyfunc(lambda a, b, c: a + b * c, 3, 1)
    assert three(1, 2, 3).tolist() == 7
    with pytest.raises(ArgumentError, match="takes 3 arguments, got 2"):
        three(1, 2)
    with pytest.raises(TypeError):
        fnp.add(1)


def test_ufuncs_are_static_arguments() -> None:
    apply = fxflow.jit(lambda f, x: f(x), static_argnums=0)
    assert float(apply(fnp.sin, 0.0)) == 0.0
    assert fxflow.vmap(fnp.add)(np.ones(2), np.ones(2)).tolist() == [2, 2]
    assert pickle.loads(pickle.dumps(fnp.add)) is fnp.add


@pytest.mark.parametrize("other", ["a", b"a", None, {"a": 1}, {1}, object()])
def test_operators_refuse_what_is_pythons_own(other) -> None:
    for use in (lambda x: x + other, lambda x: other * x, lambda x: x < other):
        with pytest.raises(TypeError, match="which is not an array"):
            use(fnp.ones(2))
        with pytest.raises(TypeError, match="which is not an array"):
            jit(use)(fnp.ones(2))
    assert (fnp.ones(2) == other) is False
