"""Collectives between devices: what they mean in NumPy, and what `vmap` makes of them.

Many collectives are compiled as one program, since compiling is what takes time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import P, grad, jit, lax, make_mesh, pmap, shard_map, vmap
from fxflow.devices import plugins, topologies
from fxflow.devices.inflight import has_collectives
from fxflow.devices.meshes import Mesh
from tests.lax.collectives import (
    SPLIT,
    data,
    meaning,
    program,
    ring,
    same,
    some,
    without_derivative,
)


def over_mesh(function, mesh, axes, **options):
    """Each device's results, stacked row-major over `axes`."""
    spec = P(axes if isinstance(axes, tuple) else (axes,))
    over = fxflow.tree.map
    one = lambda x: over(lambda v: v[None], function(over(lambda v: v[0], x)))
    return shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec, **options)


MESHES = {
    "1": ((1,), ("i",), "i"),
    "2": ((2,), ("i",), "i"),
    "8": ((8,), ("i",), "i"),
    "2x2": ((2, 2), ("i", "j"), ("i", "j")),
    "4x2-turned": ((4, 2), ("i", "j"), ("j", "i")),
}
GROUPS = {
    "halves": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "mixed": [[6, 1], [0, 5], [7, 2], [3, 4]],
    "alone": [[i] for i in range(8)],
}
UNEVEN = [[0, 3], [1], [2, 4, 5, 6, 7]]


# -- values ----------------------------------------------------------------------------


@pytest.mark.parametrize("which", MESHES)
def test_shard_map(which):
    shape, names, axes = MESHES[which]
    mesh = make_mesh(shape, names)
    x = data(mesh.size)
    both = lambda v: {**program(axes)(v), **without_derivative(axes)(v)}
    same(over_mesh(both, mesh, axes)(x), meaning(x), (mesh.size,))


@pytest.mark.parametrize("which", GROUPS)
def test_groups_agree_with_numpy(which):
    groups = GROUPS[which]
    x = data(8)
    both = lambda v: {**program("i", groups)(v), **without_derivative("i", groups)(v)}
    same(vmap(both, axis_name="i")(x), meaning(x, groups), (8,))
    same(pmap(both, axis_name="i")(x), meaning(x, groups), (8,))


def test_groups_over_two_axes():
    groups = GROUPS["mixed"]
    axes = ("j", "i")
    both = lambda v: {**program(axes, groups)(v), **without_derivative(axes, groups)(v)}
    x = data(8)
    expected = meaning(x, groups)
    mesh = make_mesh((4, 2), ("i", "j"))
    same(over_mesh(both, mesh, axes)(x), expected, (8,))
    nested = vmap(vmap(both, axis_name="i"), axis_name="j")
    same(nested(x.reshape(2, 4, SPLIT, 3)), expected, (2, 4))


def test_uneven_groups():
    """Sums and extrema only: the others' shapes would depend on the place."""
    x = data(8)

    def reduced(v):
        own = {"axis_index_groups": UNEVEN}
        return {
            **without_derivative("i", UNEVEN)(v),
            "psum": lax.psum(v, "i", **own),
            "pmean": lax.pmean(v, "i", **own),
        }

    expected = meaning(x, UNEVEN)
    same(vmap(reduced, axis_name="i")(x), expected, (8,))
    same(pmap(reduced, axis_name="i")(x), expected, (8,))


def test_pmap():
    x = data(4)
    both = lambda v: {**program("i")(v), **without_derivative("i")(v)}
    same(pmap(both, axis_name="i")(x), meaning(x), (4,))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (3, 2)])
def test_vmap_over_one_and_two_axes_agrees_with_numpy(shape):
    """Over one or two axes, of which the second is named first."""
    count = int(np.prod(shape))
    x = data(count)
    names = ("j", "i")[-len(shape) :]
    axes = names if len(names) > 1 else names[0]
    run = lambda v: {**without_derivative(axes)(v), **moved(axes)(v)}
    for name in reversed(names):
        run = vmap(run, axis_name=name)
    same(run(x.reshape(*shape, SPLIT, 3)), meaning(x), shape)


def moved(axes):
    """The part of `program` whose shapes do not depend on the number of places."""

    def run(x):
        size = lax.axis_size(axes)
        return {
            "psum": lax.psum(x, axes),
            "gather": lax.all_gather(x, axes, axis=1),
            "ring": lax.ppermute(x, axes, ring(size)),
            "some": lax.ppermute(x, axes, some(size)),
            "shuffle": lax.pshuffle(x, axes, list(range(size))[::-1]),
            "broadcast": lax.pbroadcast(x, axes, size - 1),
        }

    return run


@pytest.mark.parametrize("axes", [("d", "v"), ("v", "d")])
def test_one_axis_of_a_vmap_one_of_a_mesh(axes):
    mesh = make_mesh((2,), ("d",))
    x = data(8)

    def both(v):
        return {**program(axes)(v), **without_derivative(axes)(v)}

    at = axes.index("d")
    shape = (2, 4) if at == 0 else (4, 2)

    def part(v):
        outs = vmap(both, axis_name="v")(fnp.squeeze(v, at))
        return fxflow.tree.map(lambda r: fnp.expand_dims(r, at), outs)

    spec = P(*[None] * at, "d")
    run = shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec)
    same(run(x.reshape(*shape, SPLIT, 3)), meaning(x), shape)


def test_mesh_axis_left_to_the_compiler():
    """Manual over one axis of two: there the place comes as an operand."""
    mesh = make_mesh((2, 4), ("a", "i"))
    x = data(4)

    def both(v):
        return {**program("i")(v), **without_derivative("i")(v)}

    run = jit(over_mesh(both, mesh, "i", axis_names={"i"}))
    same(run(x), meaning(x), (4,))
    groups = [[3], [1, 0, 2]]
    divided = without_derivative("i", groups)
    run = jit(over_mesh(divided, mesh, "i", axis_names={"i"}))
    same(run(x), meaning(x, groups), (4,))


# -- dtypes ----------------------------------------------------------------------------

DTYPES = ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "complex64"]


def test_any_dtype_moves_unchanged():
    mesh = make_mesh((4,), ("i",))
    rng = np.random.default_rng(1)
    xs = {d: fnp.asarray(rng.integers(0, 2, (4, 4, 3))).astype(d) for d in DTYPES}
    xs["key"] = fxflow.random.split(fxflow.random.key(0), (4, 4, 3))

    def run(x):
        return {
            "gather": lax.all_gather(x, "i", axis=-1),
            "permute": lax.ppermute(x, "i", ring(4)),
            "exchange": lax.all_to_all(x, "i", 0, 1),
            "tiled": lax.all_to_all(x, "i", 0, -1, tiled=True),
            "broadcast": lax.pbroadcast(x, "i", 2),
        }

    words = lambda v: fxflow.tree.map(
        lambda a: np.asarray(fxflow.random.key_data(a) if "key" in str(a.dtype) else a),
        v,
    )
    got = words(over_mesh(run, mesh, "i")(xs))
    along = words(vmap(run, axis_name="i")(xs))
    for name, arrays in got.items():
        for dtype, value in arrays.items():
            assert value.dtype == along[name][dtype].dtype
            np.testing.assert_array_equal(value, along[name][dtype], f"{name} {dtype}")
    plain = np.asarray(xs["bfloat16"])
    np.testing.assert_array_equal(got["permute"]["bfloat16"], np.roll(plain, 1, 0))


def test_broadcast_keeps_every_bit():
    bits = np.array([0x80000000, 0x7FC00001, 0xFF800000, 1], np.uint32)
    x = bits.view(np.float32)
    out = pmap(lambda v: lax.pbroadcast(v, "i", 0), axis_name="i")(
        np.stack([x, np.ones_like(x)])
    )
    np.testing.assert_array_equal(np.asarray(out)[1].view(np.uint32), bits)


# -- derivatives, vectorization --------------------------------------------------------


def loss_of(function):
    """A function of all slices, different in each result's elements."""

    def loss(x):
        total = 0.0
        for value in fxflow.tree.leaves(function(x)):
            weights = np.cos(np.arange(value.size)).reshape(value.shape)
            total = total + fnp.sum(fnp.sin(value) * weights.astype(np.float32))
        return total

    return loss


@pytest.mark.parametrize(
    ("shape", "axes", "groups"),
    [((4,), "i", None), ((2, 2), ("j", "i"), None), ((4,), "i", [[2, 0], [1, 3]])],
)
def test_gradients_over_devices_agree_with_one_device(shape, axes, groups):
    mesh = make_mesh(shape, ("i", "j")[: len(shape)])
    x = data(4) / 16
    run = program(axes, groups)
    one_device = vmap(run, axis_name="i")
    if len(shape) > 1:
        inner = vmap(vmap(run, axis_name="i"), axis_name="j")
        flat = lambda v: v.reshape(4, *v.shape[2:])
        one_device = lambda v: fxflow.tree.map(
            flat, inner(fnp.reshape(v, (2, 2, *v.shape[1:])))
        )
    expected = grad(loss_of(one_device))(x)
    got = jit(grad(loss_of(over_mesh(run, mesh, axes))))(x)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)


def test_gradient_inside_and_tangent():
    """Taken by each device: cotangents of all come together, as under vmap."""
    x = data(4) / 16
    w = data(8)[:4]

    def inside(v, ct):
        function = lambda u: program("i")(u)["scatter"] * lax.psum(u, "i").sum()
        out, pull = fxflow.vjp(function, v)
        return out, pull(ct[: out.shape[0]])[0], fxflow.jvp(function, (v,), (ct,))[1]

    got = pmap(inside, axis_name="i")(x, w)
    expected = vmap(inside, axis_name="i")(x, w)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_vmap_inside():
    """Another axis comes along."""
    mesh = make_mesh((4,), ("i",))
    x = np.stack([data(4), data(4) + 1], 1)
    got = over_mesh(vmap(program("i")), mesh, "i")(x)
    parts = [meaning(x[:, 0]), meaning(x[:, 1])]
    for name, value in got.items():
        want = np.stack([part[name] for part in parts], 1)
        np.testing.assert_allclose(value, want, rtol=1e-6, err_msg=name)


def test_replication_is_known():
    mesh = make_mesh((4,), ("i",))
    over = lambda f: shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P())
    x = data(4)
    for function in (
        lambda v: lax.psum(v, "i"),
        lambda v: lax.pmax(v, "i"),
        lambda v: lax.all_gather(v, "i", to="invarying"),
    ):
        over(function)(x)
    for function in (
        lambda v: lax.psum(v, "i", axis_index_groups=[[0, 1], [2, 3]]),
        lambda v: lax.all_gather(v, "i"),
        lambda v: lax.pbroadcast(v, "i", 1),
        lambda v: lax.all_gather(v, "i", axis_index_groups=[[0, 1], [2, 3]]),
        lambda v: lax.ppermute(v, "i", ring(4)),
        lambda v: lax.all_to_all(v[0], "i", 0, 0, tiled=True),
    ):
        with pytest.raises(TypeError, match="may vary along the mesh axis 'i'"):
            over(function)(x)


# -- for other machines ----------------------------------------------------------------

OPERATIONS = {
    "psum": (lambda x: lax.psum(x, "i"), "all_reduce"),
    "pmax": (lambda x: lax.pmax(x, "i"), "all_reduce"),
    "psum-groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]),
        "all_reduce",
    ),
    # Their runtimes have no groups of different lengths, nor an order of complex ones.
    "psum-uneven": (
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2, 1], [3]]),
        "all_gather",
    ),
    "pmax-complex": (lambda x: lax.pmax(x + 1j, "i").real, "all_gather"),
    "all_gather": (lambda x: lax.all_gather(x, "i"), "all_gather"),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), "reduce_scatter"),
    "ppermute": (lambda x: lax.ppermute(x, "i", ring(4)), "collective_permute"),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 1), "all_to_all"),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), "collective_broadcast"),
}


def lowered(function, mesh, platform):
    spec = P("i")
    one = lambda x: function(x[0])[None]
    over = jit(shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec))
    aval = fxflow.ShapeDtypeStruct((4, 4, 3), "float32")
    return over.trace(aval).lower(platforms=(platform,))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_lowering_for_other_platforms(platform, name):
    function, operation = OPERATIONS[name]
    if (platform, name) == ("tpu", "pbroadcast"):
        operation = "all_reduce"
    text = lowered(function, make_mesh((4,), ("i",)), platform).as_text()
    assert f'"stablehlo.{operation}"' in text


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "plugin"), [("gpu", "cuda"), ("tpu", "tpu")])
def test_compiling_for_other_platforms(platform, plugin):
    """Every collective is one that the platform's compiler takes."""
    wheel = plugins.find().get(plugin)
    if wheel is None or plugins.version_problem(wheel):
        pytest.skip(f"the wheel of the {plugin} plug-in is not installed")
    if platform == "gpu":
        data = Path(__file__).parent.parent / "devices" / "data" / "h200.txtpb"
        devices = topologies.gpu_devices(data.read_text(), "1x1x4")
    else:
        devices = topologies.tpu_devices("v5e:2x2")
    mesh = Mesh(np.array(devices), ("i",))
    for function, _ in OPERATIONS.values():
        compiled = lowered(function, mesh, platform).compile()
        assert has_collectives(compiled.as_text())


# -- properties ------------------------------------------------------------------------


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    names = tuple("abc"[: len(sizes)])
    used = tuple(draw(st.permutations(names)))[: draw(st.integers(1, len(sizes)))]
    return sizes, shape, names, used


@settings(max_examples=40)
@given(cases(), st.data())
def test_movements_along_any_axes(case, draws):
    """Exchange there and back, gather and choose, permute and back: nothing is lost."""
    sizes, shape, names, used = case
    of = dict(zip(names, sizes, strict=True))
    count = int(np.prod([of[name] for name in used]))
    axis = draws.draw(st.integers(0, len(shape)))
    split = draws.draw(st.integers(0, len(shape)))
    join = draws.draw(st.integers(0, len(shape)))
    order = draws.draw(st.permutations(range(count)))
    x = np.arange(np.prod([*sizes, *shape], dtype=int), dtype=np.int32)
    x = x.reshape(*sizes, *shape)

    def check(v):
        mine = lax.axis_index(used)
        every = lax.all_gather(v, used, axis=axis)
        again = lax.dynamic_index_in_dim(every, mine, axis, keepdims=False)
        there = lax.all_to_all(every, used, axis, split)
        back = lax.all_to_all(there, used, split, join)
        once = lax.pshuffle(v, used, list(order))
        home = lax.pshuffle(once, used, list(np.argsort(order)))
        total = lax.psum_scatter(every, used, scatter_dimension=axis)
        return again, fnp.moveaxis(back, join, axis) - every, home, total

    run = check
    for name in reversed(names):
        run = vmap(run, axis_name=name)
    again, difference, home, total = run(x)
    np.testing.assert_array_equal(again, x)
    assert not np.asarray(difference).any()
    np.testing.assert_array_equal(home, x)
    np.testing.assert_array_equal(total, x * count)


# -- without waiting -------------------------------------------------------------------

MANY_CALLS = """
    import fxflow, fxflow.numpy as fnp
    from fxflow import lax
    step = fxflow.pmap(lambda x: lax.psum(x, "i") / 8 + lax.pmax(x, "i") * 0,
                       axis_name="i")
    x = fnp.arange(8.0)
    for _ in range(500):
        x = step(x)
    print(x[0])
"""


def test_many_calls_without_waiting():
    """The CPU's devices share threads: programs in flight must not starve."""
    env = {**os.environ, "FXFLOW_NUM_CPU_DEVICES": "8"}
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MANY_CALLS)],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip() == "3.5"
