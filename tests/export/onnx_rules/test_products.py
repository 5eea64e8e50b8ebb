import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import errors, export, jit, lax
from tests.export.onnx_rules.checks import check, kinds

RANDOM = np.random.default_rng(0)


def draw(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("bthd,bshd->bhts", [(2, 3, 4, 5), (2, 6, 4, 5)]),
        ("ijk,jkl->il", [(2, 3, 4), (3, 4, 5)]),
        ("i,i->", [(3,), (3,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("bi,b->bi", [(2, 3), (2,)]),
        ("abc,cd->abd", [(2, 3, 4), (4, 5)]),
    ],
    ids=lambda e: e if isinstance(e, str) else "",
)
def test_products(equation, shapes):
    check(lambda x, y: fnp.einsum(equation, x, y), *(draw(*s) for s in shapes))


def test_a_matrix_product_is_one_node():
    made = check(lambda x, y: x @ y, draw(2, 3), draw(3, 4))
    assert kinds(made) == {"MatMul": 1, "Identity": 1}


def test_products_of_other_dtypes():
    x, y = draw(3, 4).astype("bfloat16"), draw(4, 2).astype("bfloat16")

    def f(x, y):
        wide = lax.dot(x, y, preferred_element_type=fnp.float32)
        return x @ y, wide

    check(f, fnp.array(x), fnp.array(y))
    whole = RANDOM.integers(-100, 100, (3, 4)).astype(np.int8)
    check(lambda x: lax.dot(x, x.T, preferred_element_type=fnp.int32), whole)


LAYOUTS = {"first": ("NCHW", "OIHW", "NCHW"), "last": ("NHWC", "HWIO", "NHWC")}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "settings",
    [
        {"padding": "SAME"},
        {"window_strides": (2, 1), "padding": ((1, 2), (0, 1))},
        {"rhs_dilation": (2, 2)},
        {"lhs_dilation": (2, 3), "padding": ((1, 1), (2, 0))},
        {"padding": ((-1, 0), (1, -1))},
        {"feature_group_count": 2},
        {"batch_group_count": 2},
    ],
    ids=lambda s: "-".join(s),
)
def test_convolutions(layout, settings):
    groups = settings.get("feature_group_count", 1)
    image, kernel = draw(2, 4, 7, 6), draw(4, 4 // groups, 3, 2)
    if layout == "last":
        image, kernel = image.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0)
    settings = {"window_strides": (1, 1), "padding": "VALID", **settings}

    def f(x, y):
        return lax.conv_general_dilated(
            x, y, dimension_numbers=LAYOUTS[layout], **settings
        )

    assert kinds(check(f, image, kernel))["Conv"] >= 1


def test_convolutions_of_integers_are_refused():
    x = fnp.ones((1, 1, 5), "int32")
    with pytest.raises(errors.ExportError, match="ONNX only convolves floats"):
        export.onnx(
            jit(lambda x: lax.conv_general_dilated(x, x, (1,), "VALID")).trace(x)
        )
