"""What `jax.numpy` does otherwise than NumPy and `fxflow.numpy`, as JAX 0.10.2 does."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.compat import jax
from fxflow.compat.jax import lax
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.experimental import scheduling_groups, xla_metadata
from fxflow.compat.jax.experimental.sparse import ad, api
from fxflow.compat.jax.experimental.sparse import random as sparse_random


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("fft", (0,), "complex64"),
        ("ifft", (2, 0), "complex64"),
        ("irfft", (2, 0), "float32"),
        ("fftn", (2, 0), "complex64"),
        ("irfftn", (2, 0), "float32"),
        ("fft2", (3, 0, 2), "complex64"),
    ],
)
def test_transforms_of_no_points_are_empty(name, shape, dtype):
    found = getattr(jnp.fft, name)(jnp.ones(shape))
    assert found.shape == shape and found.dtype == dtype
    with pytest.raises(ValueError, match="at least one point"):
        jnp.fft.rfft(jnp.ones(shape[-1:] if shape[-1] == 0 else (0,)))


def test_transforms_take_arguments_by_place():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(
        jnp.fft.ifft(x, 4, 0, "ortho"), np.fft.ifft(x, 4, 0, "ortho"), atol=1e-6
    )
    np.testing.assert_allclose(
        jax.jit(lambda x: jnp.fft.fft2(x, (4, 4)))(x), np.fft.fft2(x, (4, 4)), atol=1e-5
    )


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("axes", [(0,), (0, 1, 2)])
def test_transforms_of_planes_take_two_axes(name, axes):
    with pytest.raises(ValueError, match=f"{name} takes 2 axes"):
        getattr(jnp.fft, name)(jnp.ones((2, 2, 2)), axes=axes)


def test_ufuncs_are_those_of_numpy():
    found = {n for n in dir(jnp) if isinstance(getattr(jnp, n), jnp.ufunc)}
    assert {"add", "maximum", "sin", "divmod", "logaddexp2"} <= found
    assert not found & {"i0", "imag", "iscomplex", "isneginf", "real", "sinc"}
    for name in found - {"fix"}:  # which is trunc here
        theirs, ours = getattr(np, name), getattr(jnp, name)
        assert (ours.nin, ours.nout) == (theirs.nin, theirs.nout), name
    assert isinstance(jnp.frompyfunc(lambda x: x + 1, 1, 1), jnp.ufunc)


def test_grids_without_a_stop_end_at_the_start():
    np.testing.assert_array_equal(jnp.mgrid[3:], [0, 1, 2])
    np.testing.assert_array_equal(jnp.mgrid[1:, :2], np.mgrid[:1, :2])
    np.testing.assert_array_equal(jnp.r_[3:], [0, 1, 2])
    assert jnp.mgrid[-2:].shape == (0,)
    np.testing.assert_array_equal(jnp.ogrid[0:3, 2:][1], [[0, 1]])
    np.testing.assert_array_equal(jnp.c_[[1, 2], [3, 4]], [[1, 3], [2, 4]])


def test_small_dtypes_have_names():
    assert jnp.iinfo(jnp.int1).min == -1 and jnp.iinfo(jnp.uint1).max == 1
    assert jnp.issubdtype(jnp.uint1, jnp.unsignedinteger)
    assert jnp.issubdtype(jnp.float6_e2m3fn, jnp.floating)
    assert not jnp.issubdtype(jnp.float6_e3m2fn, jnp.integer)
    with pytest.raises(TypeError, match="XLA has no such element type"):
        jnp.zeros(2, jnp.float6_e3m2fn)


def test_paths_of_einsum_begin_with_a_pair():
    path, text = jnp.einsum_path("ij,jk,kl->il", *3 * [jnp.ones((2, 2))])
    assert len(path) == 2 and all(len(pair) == 2 for pair in path)
    assert "FLOP" in text


def test_parts_of_references():
    ref = jax.new_ref(jnp.arange(6.0))
    np.testing.assert_array_equal(ref[jax.ds(2, 3)], [2, 3, 4])
    ref[jax.ds(1, 2)] = jnp.zeros(2)
    np.testing.assert_array_equal(ref[...], [0, 0, 0, 3, 4, 5])


def test_contexts_are_decorators():
    device = jax.devices()[1]

    @jax.default_device(device)
    def made():
        return jnp.ones(1)

    assert made().devices() == made().devices() == {device}
    assert jnp.ones(1).devices() != {device}


def test_abstract_meshes_are_entered():
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    with jax.sharding.use_abstract_mesh(mesh):
        assert jax.sharding.get_abstract_mesh() is mesh
    assert jax.sharding.get_abstract_mesh().axis_names == ()


def test_polar_decomposition():
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("f")
    unitary, positive, count, converged = lax.linalg.qdwh(x)
    np.testing.assert_allclose(unitary @ positive, x, atol=1e-5)
    np.testing.assert_allclose(unitary.T @ unitary, np.eye(3), atol=1e-5)
    assert np.linalg.eigvalsh(positive).min() > 0
    assert count.dtype == "int32" and converged
    with pytest.raises(NotImplementedError, match="slice the array"):
        lax.linalg.qdwh(x, dynamic_shape=(2, 2))


def test_hints_for_xla_leave_results():
    with xla_metadata.set_xla_metadata(priority="high"):
        y = fnp.ones(2)
    assert xla_metadata.set_xla_metadata(y, a="b") is y
    double = scheduling_groups.scheduling_group(name="a")(lambda x: 2 * x)
    tagged = xla_metadata.set_xla_metadata(a="b")(double)
    np.testing.assert_array_equal(jax.jit(tagged)(y), [2, 2])
    np.testing.assert_array_equal(
        scheduling_groups.xla_metadata_call(double, a="b")(y), [2, 2]
    )
    assert lax.dce_sink(y) is None


def test_modules_of_sparse_arrays():
    matrix = sparse_random.random_bcoo(jax.random.key(0), (4, 4), nse=3)
    assert api.todense(matrix).shape == (4, 4)
    slope = ad.grad(lambda m: (m @ jnp.ones(4)).sum())(matrix)
    assert slope.shape == (4, 4)
