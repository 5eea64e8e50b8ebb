"""Rules on batches and rules as graphs."""

from __future__ import annotations

import numpy as np

from fxflow import lax
from fxflow.core.arrays.array import as_array
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.primitive import Zero
from fxflow.lax.custom_rules import (
    BatchedBackward,
    BatchedJVPRule,
    BatchedVJPRule,
    TracedJVPRule,
    TracedVJPRule,
)

F32 = np.dtype(np.float32)
SCALAR = Aval((), F32)
XS = as_array(np.arange(3.0, dtype=np.float32))
Y = as_array(np.float32(2.0))


def product_rule(consts, primals, tangents):
    """The rule of `c x y`; the tangent by `y` is left out where it is zero."""
    (c,), (x, y), (tx, ty) = consts, primals, tangents
    out = lax.mul(c, lax.mul(x, y))
    if type(tx) is Zero and type(ty) is Zero:
        return [out], [Zero(SCALAR)]
    terms = []
    if type(tx) is not Zero:
        terms.append(lax.mul(tx, y))
    if type(ty) is not Zero:
        terms.append(lax.mul(x, ty))
    total = terms[0] if len(terms) == 1 else lax.add(*terms)
    return [out], [lax.mul(c, total)]


def test_batched_jvp_rule():
    rule = BatchedJVPRule(product_rule, 3, [False, True, False], None, [True])
    outs, tangents = rule([Y], [XS, Y], [XS, Zero(SCALAR)])
    assert outs[0].tolist() == [0.0, 4.0, 8.0]
    assert tangents[0].tolist() == [0.0, 4.0, 8.0]
    _, tangents = rule([Y], [XS, Y], [Zero(XS.aval), Y])
    assert tangents[0].tolist() == [0.0, 4.0, 8.0]
    _, (zero,) = rule([Y], [XS, Y], [Zero(XS.aval), Zero(SCALAR)])
    assert type(zero) is Zero
    assert zero.shape == (3,)


class ProductVJP:
    name = "product"

    def forward(self, consts, primals, active):
        x, y = primals
        return [lax.mul(x, y)], [x, y], self.backward

    def backward(self, residuals, cotangents):
        (x, y), (ct,) = residuals, cotangents
        if type(ct) is Zero:
            return [Zero(SCALAR), Zero(SCALAR)]
        return [lax.mul(ct, y), lax.mul(ct, x)]


def test_batched_vjp_rule():
    rule = BatchedVJPRule(ProductVJP(), 3, [True, False], None, [True])
    outs, residuals, backward = rule.forward([], [XS, Y], [True, True])
    assert outs[0].tolist() == [0.0, 2.0, 4.0]
    by_x, by_y = backward(residuals, [as_array(np.ones(3, np.float32))])
    assert by_x.tolist() == [2.0, 2.0, 2.0]
    assert float(by_y) == 3.0, "summed over the slices"
    by_x, by_y = backward(residuals, [Zero(XS.aval)])
    assert (by_x.shape, by_y.shape) == ((3,), ())


def test_batched_backward_of_what_does_not_vary():
    def backward(residuals, cotangents):
        return [residuals[0]]

    batched = BatchedBackward(backward, 3, [False], [True], [False], None)
    (ct,) = batched([Y], [XS])
    assert float(ct) == 6.0, "the same for three slices"


def test_traced_rules():
    rule = TracedJVPRule(
        lambda consts, primals, tangents: product_rule([Y], primals, tangents),
        [SCALAR, SCALAR],
    )
    outs, tangents = rule(rule.consts, [Y, Y], [Y, Zero(SCALAR)])
    assert (float(outs[0]), float(tangents[0])) == (8.0, 8.0)
    reverse = TracedVJPRule(ProductVJP(), [SCALAR, SCALAR], [SCALAR])
    outs, residuals, backward = reverse.forward([], [Y, Y], [True, True])
    assert float(outs[0]) == 4.0
    assert [float(ct) for ct in backward(residuals, [Y])] == [4.0, 4.0]
