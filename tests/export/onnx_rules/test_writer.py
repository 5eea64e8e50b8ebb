"""Each operation gives XLA's results in ONNX Runtime, or is refused.

The samples are the conformance suite's; CI draws some.
"""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, lax, random
from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import subgraphs
from fxflow.export.onnx_rules import writer
from tests.conformance import cases
from tests.export.onnx_rules.checks import check, kinds
from tests.sweeps.sampling import sample

#: What ONNX has no node for, nor fxflow a composition of what it has.
WITHOUT = frozenset(
    (
        *("bessel_i0e", "bessel_i1e", "bitcast_convert_type", "check", "cholesky"),
        *("cholesky_update", "complex", "conj", "ctc_loss", "digamma", "eig", "eigh"),
        *("erf_inv", "exported_call", "ffi_call", "fft", "geqp3", "geqrf"),
        *("hessenberg", "householder_product", "igamma", "igamma_grad_a", "igammac"),
        *("imag", "lgamma", "linear_solve", "lu", "nextafter", "ormqr", "pcast"),
        *("pivoted_qr", "polygamma", "python_callback", "qr", "random_bits"),
        *("random_fold_in", "random_gamma", "random_gamma_grad", "random_split"),
        *("random_unwrap", "random_wrap", "real", "reduce_window"),
        *("regularized_incomplete_beta", "rng_bit_generator", "scatter_apply"),
        *("schur", "select_and_gather_add", "select_and_scatter_add", "shard_map"),
        *("svd", "symmetric_product", "threefry2x32", "triangular_solve"),
        *("tridiagonal", "tridiagonal_solve", "zeta"),
    )
)
#: NaN has no place in an order of ONNX's.
UNORDERED = ("argmax-6-nan", "argmin-6-nan", "top_k-3-")
#: Kernels that ONNX Runtime has not for float64.
SINGLE = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan"),
    *("Conv", "Erf"),
)

CASES = [
    case
    for case in cases.cases()
    if case.primitive.name not in WITHOUT
    and not case.id.startswith(UNORDERED)
    # These integers need the option `x64`.
    and not case.id.endswith("edges-int64")
]


def dtypes_of(graph):
    """Returns all dtypes in a graph."""
    found = {a.dtype for a in (*graph.in_avals, *graph.out_avals)}
    for node in graph.nodes:
        found |= {v.aval.dtype for v in node.outputs}
        for _, inner in subgraphs(node.params):
            found |= dtypes_of(inner)
    return found


def refused_by_dtype(dtype):
    narrow = not dtypes.is_bool(dtype) and not dtypes.is_key(dtype)
    return (
        dtypes.is_key(dtype)
        or dtypes.is_complex(dtype)
        or (narrow and dtypes.bits(dtype) < 8)
    )


@pytest.mark.parametrize("case", sample(CASES, 60, of="onnx"), ids=lambda c: c.id)
def test_each_primitive_is_exported_or_refused(case):
    problem = cases.problem(case)
    traced = fxflow.jit(problem.function).trace(*problem.args)
    if any(map(refused_by_dtype, dtypes_of(traced.graph))):
        with pytest.raises((errors.ExportError, errors.ArgumentError)):
            export.onnx(traced)
        return
    try:
        check(problem.function, *problem.args)
    except errors.ArgumentError as error:
        assert "NOT_IMPLEMENTED" in str(error)
        assert any(f"implementation for {kind}(" in str(error) for kind in SINGLE)
        assert np.dtype(np.float64) in dtypes_of(traced.graph)
    except errors.ExportError as error:
        words = "only for bools", "only convolves floats", "ONNX only supports f16"
        assert any(word in str(error) for word in words)


@pytest.mark.parametrize("name", ["digamma", "fft", "qr", "random_bits"])
def test_unsupported_operations_are_refused_by_name(name):
    case = next(c for c in cases.cases() if c.primitive.name == name)
    problem = cases.problem(case)
    with pytest.raises(errors.ExportError, match=f"{name} (has no|uses complex)"):
        export.onnx(fxflow.jit(problem.function).trace(*problem.args))


def test_a_refusal_has_the_users_line():
    def refused(x):
        return lax.digamma(x) + 1

    line = refused.__code__.co_firstlineno + 1
    with pytest.raises(errors.ExportError) as caught:
        export.onnx(fxflow.jit(refused).trace(fnp.ones(3)))
    assert "onnx: refused: digamma has no counterpart in ONNX" in str(caught.value)
    assert f"{__file__}:{line} (refused)" in str(caught.value)


def test_keys_are_refused():
    with pytest.raises(errors.ExportError, match="takes random keys"):
        export.onnx(fxflow.jit(lambda k: random.bits(k, (3,))).trace(random.key(0)))


def test_constants_are_written_once():
    def f(x):
        rows = x.reshape(3, 2)
        return rows.sum(1).reshape(3, 1) * rows

    made = check(f, fnp.ones(6))
    names = [i.name for i in made.model.graph.initializer]
    assert len(names) == len(set(names)) <= 4


def test_broadcasts_are_left_to_their_users():
    def f(x, b):
        return (x + b) * fnp.max(x, axis=0), fnp.broadcast_to(b, x.shape)

    made = check(f, fnp.arange(6.0).reshape(2, 3), fnp.arange(3.0))
    assert kinds(made)["Expand"] == 1  # for the second result


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint16", "uint32"])
def test_narrow_dtypes_wrap_and_round(dtype):
    x = fnp.arange(100, 104).astype(dtype)

    def f(x):
        return x * x + x, fnp.where(x > 101, x, 1), fnp.sum(x, dtype=dtype), -x

    check(f, x)


def test_wider_dtypes_replace_unsupported_ones():
    for kind in ("Add", "Where", "ReduceSum", "MatMul", "Identity", "Pad"):
        for name in writer._ALL | {"bfloat16"}:
            dtype = dtypes.dtype(name)
            wide = writer._wider(kind, dtype)
            assert dtypes.bits(wide) >= dtypes.bits(dtype)
            assert dtypes.is_floating(wide) == dtypes.is_floating(dtype)
