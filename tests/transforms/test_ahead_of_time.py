"""Programs for machines that are not here: GPUs and TPUs need their plug-in's wheel."""

from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
from fxflow.devices import plugins, topologies

DATA = Path(__file__).parents[1] / "devices" / "data"


def devices_of(platform):
    if platform == "cpu":
        return topologies.cpu_devices(4)
    plugin = plugins.find().get({"gpu": "cuda"}.get(platform, platform))
    if plugin is None or plugins.version_problem(plugin):
        pytest.skip(f"the wheel of the {platform} plug-in is not installed")
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
