"""Programs for machines that are not here: GPUs and TPUs need their plug-in's wheel."""

from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, memory, nn
from fxflow.devices import topologies
from tests.devices.wheels import require_wheel

DATA = Path(__file__).parents[1] / "devices" / "data"


def devices_of(platform):
    if platform == "cpu":
        return topologies.cpu_devices(4)
    require_wheel({"gpu": "cuda"}.get(platform, platform))
    if platform == "tpu":
        return topologies.tpu_devices("v5e:2x2")
    return topologies.gpu_devices((DATA / "h200.txtpb").read_text(), "1x1x4")


@pytest.fixture(scope="module", params=["cpu", "gpu", "tpu"])
def mesh(request):
    devices = np.array(devices_of(request.param), object)
    return fxflow.Mesh(devices.reshape(2, 2), ("x", "y"))


def like(mesh, *spec):
    where = NamedSharding(mesh, P(*spec))
    return fxflow.ShapeDtypeStruct((512, 512), "float32", sharding=where)


def test_the_partitioner(mesh):
    lowered = fxflow.jit(lambda a, b: fnp.sum(a @ b)).trace(
        like(mesh, "x", "y"), like(mesh, "y")
    )
    compiled = lowered.lower().compile()
    assert "all-reduce" in compiled.as_text()
    sizes = compiled.memory_analysis()
    whole = 512 * 512 * 4
    assert sizes["argument_size_in_bytes"] == whole // 4 + whole // 2
    ones = np.ones((512, 512), np.float32)
    if mesh.flat[0].platform == "cpu":
        assert float(compiled(ones, ones)) == 512**3
    else:
        with pytest.raises(RuntimeError, match=r"ahead of time.*cannot be run"):
            compiled(ones, ones)


def test_collectives(mesh):
    @fxflow.shard_map(mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    def f(a):
        moved = lax.ppermute(a, "y", [(0, 1), (1, 0)])
        return lax.psum(a, "x") + lax.pmax(moved, "x") + lax.axis_index("y")

    text = fxflow.jit(f).trace(like(mesh, "x", "y")).lower().compile().as_text()
    assert "all-reduce" in text and "collective-permute" in text


def test_gradients_and_donation(mesh):
    def step(w, x):
        return w - 0.1 * fxflow.grad(lambda w: fnp.mean((x @ w) ** 2))(w)

    jitted = fxflow.jit(step, donate_argnums=0)
    compiled = jitted.trace(like(mesh), like(mesh, "x")).lower().compile()
    assert "all-reduce" in compiled.as_text()
    assert compiled.memory_analysis()["alias_size_in_bytes"] == 512 * 512 * 4


def test_pmap(mesh):
    f = fxflow.pmap(lambda a: lax.pmean(a, "i"), "i", devices=list(mesh.flat))
    lowered = f.lower(fxflow.ShapeDtypeStruct((4, 128), "float32"))
    assert "all-reduce" in lowered.compile().as_text()


# -- host memory -----------------------------------------------------------------------

WHOLE = 512 * 512 * 4
HOST = "pinned_host"


def sizes_of(compiled, what):
    """The bytes of arguments, results or temporaries: the device's, the host's."""
    sizes = compiled.memory_analysis()
    return sizes[f"{what}_size_in_bytes"], sizes[f"host_{what}_size_in_bytes"]


def compiled_for(fun, *args, **options):
    compiled = fxflow.jit(fun, **options).trace(*args).lower().compile()
    text = compiled.as_text()
    # Nothing is computed in host memory.
    assert "HostExecute" not in text and '_xla_compute_type="host"' not in text
    return compiled, text


@pytest.fixture
def accelerator(mesh):
    if mesh.flat[0].platform == "cpu":
        pytest.skip("on the CPU host memory is the device's own")
    return mesh


def test_results_in_host_memory(mesh):
    away = NamedSharding(mesh, P("x"), memory_kind=HOST)
    args = like(mesh, "x"), like(mesh)
    compiled, text = compiled_for(lambda a, b: a @ b, *args, out_shardings=away)
    (array_type,) = compiled.program.out_types
    assert array_type.placement.sharding == away
    assert "S(5)" in text
    if mesh.flat[0].platform != "cpu":
        assert sizes_of(compiled, "output") == (0, WHOLE // 2)
        assert "copy-start" in text
    put = lambda a, b: fxflow.device_put(a @ b, memory.Space.Host)
    (array_type,) = compiled_for(put, *args)[0].program.out_types
    assert array_type.placement.offloaded == HOST


def test_arguments_in_host_memory(accelerator):
    mesh = accelerator
    there = NamedSharding(mesh, P("x"), memory_kind=HOST)
    weights = fxflow.ShapeDtypeStruct((512, 512), "float32", sharding=there)
    for fun in (
        lambda w, a: fnp.sin(w) + a,
        lambda w, a: fxflow.device_put(w, memory.Space.Device) * a,
    ):
        compiled, text = compiled_for(fun, weights, like(mesh, "x"))
        assert sizes_of(compiled, "argument") == (WHOLE // 2, WHOLE // 2)
        assert "S(5)} parameter(0)" in text and "copy-start" in text
        assert compiled.program.out_types[0].placement.offloaded is None


def test_slices_of_arguments_in_host_memory(accelerator):
    mesh = accelerator
    there = NamedSharding(mesh, P(), memory_kind=HOST)
    stacked = fxflow.ShapeDtypeStruct((16, 512, 512), "float32", sharding=there)
    number = fxflow.ShapeDtypeStruct((), "int32")
    layers = lambda w, x: lax.scan(lambda x, w: (fnp.tanh(x @ w), None), x, w)[0]
    for fun, other in (
        (layers, like(mesh)),
        (lambda w, i: fnp.sin(w[i]), number),
        (lambda w, x: fnp.sin(w[3]) + x, like(mesh)),
    ):
        compiled, _ = compiled_for(fun, stacked, other)
        assert sizes_of(compiled, "argument")[1] == 16 * WHOLE
        # Never are all of them in the device's memory.
        assert sizes_of(compiled, "temp")[0] < 6 * WHOLE


def test_states_in_host_memory_are_donated(accelerator):
    mesh = accelerator
    there = NamedSharding(mesh, P("x"), memory_kind=HOST)
    state = fxflow.ShapeDtypeStruct((512, 512), "float32", sharding=there)
    compiled, _ = compiled_for(
        lambda m, g: 0.9 * m + g,
        state,
        like(mesh, "x"),
        out_shardings=there,
        donate_argnums=0,
    )
    assert sizes_of(compiled, "alias") == (0, WHOLE // 2)


def offloading(names):
    return fxflow.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=names,
        offload_src="device",
        offload_dst=HOST,
    )


@pytest.mark.parametrize("split", [False, True])
def test_checkpoints_in_host_memory(accelerator, split):
    mesh = accelerator
    layers, batch = 8, 2048

    def step(policy):
        def layer(x, w):
            y = fxflow.checkpoint_name(x @ w, "hidden")
            return fnp.tanh(y * y), None

        kept = fxflow.checkpoint(layer, policy=policy)
        fun = fxflow.grad(lambda w, x: fnp.sum(lax.scan(kept, x, w)[0]))
        spec = P("x") if split else P()
        shapes = (
            fxflow.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, s))
            for shape, s in (((layers, 128, 128), P()), ((batch, 128), spec))
        )
        compiled, text = compiled_for(fun, *shapes)
        return compiled, text

    hidden = layers * batch * 128 * 4 // (2 if split else 1)
    policies = fxflow.checkpoint_policies
    saved, _ = step(policies.save_only_these_names("hidden"))
    for policy in (
        offloading(["hidden"]),
        policies.offload_dot_with_no_batch_dims("device", HOST),
    ):
        compiled, text = step(policy)
        assert sizes_of(compiled, "temp")[1] == hidden
        peak = compiled.memory_analysis()["peak_memory_in_bytes"]
        assert peak < saved.memory_analysis()["peak_memory_in_bytes"] - 0.8 * hidden
        assert text.count("S(5)") > 2
    assert sizes_of(saved, "temp")[1] == 0


def test_what_is_stored_in_few_bits_is_rounded():
    """XLA leaves out a conversion and the one back, for GPUs, if nothing is between."""
    where = fxflow.SingleDeviceSharding(devices_of("gpu")[0])
    like = fxflow.ShapeDtypeStruct((4, 64), "float32", sharding=where)
    config = nn.get_scaled_dot_general_config("nvfp4")
    product = fxflow.jit(
        lambda x: nn.scaled_dot_general(
            x, x, (((1,), (1,)), ((), ())), configs=[config] * 3
        )
    )
    text = product.trace(like).lower().compile().as_text()
    assert "f4e2m1fn[" in text and "f8e4m3fn[" in text
