"""Kernels in programs for GPUs, compiled ahead of time; needs the plug-in's wheel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.devices import topologies
from fxflow.devices.clients import TRITON, runs_triton
from fxflow.kernels.gallery import int4
from fxflow.lax.kernels import triton_products
from fxflow.lax.kernels.triton_call import triton_call, why_no_triton
from tests.devices.wheels import require_wheel
from tests.lax.kernels.samples import accumulate, flash, params_of, segment_sum
from tests.lax.kernels.triton_samples import whole
from tests.sweeps.random_kernels import random_kernel

DATA = Path(__file__).parents[2] / "devices" / "data"


def gpu(capability: int = 9, shared: int = 232_448) -> Any:
    """Returns where a GPU like an H200 is, of some capability and shared memory."""
    require_wheel("cuda")
    text = (DATA / "h200.txtpb").read_text()
    text = text.replace("major: 9 }", f"major: {capability} }}")
    text = text.replace("optin: 232448", f"optin: {shared}")
    (device,) = topologies.gpu_devices(text)
    assert runs_triton(device)
    return fxflow.SingleDeviceSharding(device)


@pytest.fixture(scope="module")
def where() -> Any:
    return gpu()


#: Makes XLA refuse a program whose kernels do not fit the registers.
NO_SPILLS = {"xla_gpu_fail_ptx_compilation_on_register_spilling": True}


def compiled(where: Any, function: Any, *args: Any) -> str:
    """Compiles for the GPU, without spills; returns the StableHLO."""
    types = [
        fxflow.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)
        for x in map(fnp.asarray, args)
    ]
    lowered = fxflow.jit(function).lower(*types)
    assert TRITON in lowered.compile(NO_SPILLS).as_text()
    return lowered.as_text()


@kernels.kernel("i:4 v, v -> i:4 v", out=lambda x, s: x)
def norm(x: Any, s: Any, o: Any) -> None:
    v = x[...]
    d = v - fnp.mean(v, 1, keepdims=True)
    o[...] = d * lax.rsqrt(fnp.mean(d * d, 1, keepdims=True) + 1e-5) * s[...]


@kernels.kernel(
    "n:8 l, r d -> n:8 d",
    out=lambda i, t: kernels.like(t, shape=(i.shape[0], t.shape[1])),
)
def bag(ids: Any, table: Any, o: Any) -> None:
    o[...] = fnp.sum(table[ids[...]], 1)


@kernels.kernel("m:64 k, k n:64 -> m:64 n:64", out=lambda a, b: kernels.like(
    a, shape=(a.shape[0], b.shape[1])))  # fmt: skip
def matmul(a: Any, b: Any, o: Any, *, step: int = 32) -> None:
    def add(i: Any, total: Any) -> Any:
        at = kernels.ds(i * step, step)
        return total + kernels.dot(a[:, at], b[at])

    rounds = kernels.cdiv(a.shape[1], step)
    o[...] = lax.fori_loop(0, rounds, add, fnp.zeros(o.shape)).astype(o.dtype)


@pytest.mark.parametrize(
    ("capability", "shared"), [(8, 166_912), (9, 232_448), (10, 232_448)]
)
def test_the_gallery_compiles(capability: int, shared: int) -> None:
    where = gpu(capability, shared)
    q = fnp.zeros((2, 40, 32))
    slopes = fxflow.grad(lambda *a: fnp.sum(norm(*a) ** 2), argnums=(0, 1))
    for function, args in (
        (flash, (q, q, q)),
        (lambda x, i: segment_sum(x, i, segments=3), (q[0], fnp.arange(40) % 3)),
        (slopes, (q[0], q[0, 0])),
        (bag, (np.zeros((100, 20), "int32"), fnp.zeros((1000, 64)))),
    ):
        compiled(where, function, *args)
    for dtype in ("float32", "bfloat16"):
        x = fnp.zeros((200, 200), dtype)
        compiled(where, matmul, x, x)


@pytest.mark.parametrize("rows", [1, 8])
def test_products_with_weights_of_4_bits_compile(where: Any, rows: int) -> None:
    args = np.zeros((rows, 256), "f"), np.zeros((128, 512), "i1"), np.ones((8, 512))
    compiled(where, int4.scaled_product, *args)


def test_products_in_half_precision_use_tensor_cores(where: Any, tmp_path: Any) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        x = fnp.zeros((200, 200), dtype)
        like = fxflow.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)
        folder = tmp_path / dtype
        fxflow.jit(lambda a, b: matmul(a, b) + 0).lower(like, like).compile(
            {"xla_dump_to": str(folder)}
        )
        texts = [path.read_text() for path in folder.glob("*.ptx")]
        if texts:  # jaxlib 0.11 writes none
            assert any("wgmma" in text for text in texts) == (dtype != "float32")


def test_what_xla_refuses_runs_on_whole_arrays(
    where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_products, "_SHARED", 1 << 30)
    like = fxflow.ShapeDtypeStruct((128, 512), "bfloat16", sharding=where)
    product = whole(lambda a, b: kernels.dot(a, b.T), fnp.zeros((128, 128)))
    lowered = fxflow.jit(product).lower(like, like)
    assert TRITON in lowered.as_text()
    with pytest.warns(UserWarning, match="could not compile its kernels.*hared memory"):
        assert TRITON not in lowered.compile().as_text()


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_compile(where: Any, seed: int) -> None:
    for kind in ("float32", "bfloat16", "uint16", "bool"):
        compiled(where, *random_kernel(seed, kind))


def test_every_function_compiles(where: Any) -> None:
    def body(x: Any, n: Any, o: Any) -> None:
        v = abs(x[...])
        names = "exp log tanh sin cos tan sqrt cbrt floor ceil exp2 log1p expm1 sign"
        names += " arcsin arccosh sinh cosh arctan isfinite rint"
        total = sum(getattr(fnp, name)(v).astype("float32") for name in names.split())
        total += lax.erf(v) + lax.erfc(v) + lax.erf_inv(v) + lax.lgamma(v) + v**3
        total += lax.logistic(v) + lax.atan2(v, v) + lax.pow(v, v) + lax.rem(v, v)
        k = n[...]
        total += k // 3 + k % 5 + (k << 2) + (k >> 1) + fnp.argmax(v, 1)[:, None]
        total += fnp.cumsum(v, 1) + fnp.prod(v) + fnp.any(k > 0) + fnp.max(k)
        o[...] = total + v[::-1] + v.astype("int8") + v.astype("float16")

    x = fnp.ones((5, 7))
    compiled(where, kernels.call(body, x), x, x.astype("int32"))


def test_what_the_call_says(where: Any) -> None:
    text = compiled(where, lambda x: norm(x, x[0]), fnp.zeros((10, 32)))
    assert re.search(r'"grid_x" = 3 : i32.*"name" = "norm"', text)
    with fxflow.config.override(passes="none"):
        like = fxflow.ShapeDtypeStruct((10, 32), "float32", sharding=where)
        assert TRITON not in fxflow.jit(lambda x: norm(x, x[1])).lower(like).as_text()


def test_partial_sums_in_a_program() -> None:
    @kernels.kernel("i:2 v -> v", out=lambda x: kernels.like(x, shape=(3,)), sums="i")
    def total(x: Any, o: Any) -> None:
        o[...] = fnp.sum(x[...], 0)

    x = fnp.ones((7, 3))
    call = triton_call(params_of(total, x), [x.aval])
    assert call is not None
    graph = fxflow.make_graph(call)(x).graph
    assert [n.primitive.name for n in graph.nodes] == ["ffi_call", "reduce_sum"]
    assert graph.nodes[0].outputs[0].aval.shape == (4, 3)


def test_divided_arrays() -> None:
    require_wheel("cuda")
    text = (DATA / "h200.txtpb").read_text()
    devices = np.array(topologies.gpu_devices(text, "1x1x4"), object)
    mesh = fxflow.Mesh(devices, ("x",))

    @kernels.kernel("i:4 v -> i:4 v, v", out=lambda x: (x, x[0]), sums="i")
    def both(x: Any, o: Any, total: Any) -> None:
        o[...] = fnp.tanh(x[...])
        total[...] = fnp.sum(x[...], 0)

    def inside(x: Any) -> Any:
        o, total = both(x)
        return o, lax.psum(total, "x")

    spec = fxflow.P("x")
    mapped = fxflow.shard_map(
        inside, mesh=mesh, in_specs=spec, out_specs=(spec, fxflow.P())
    )
    where = fxflow.NamedSharding(mesh, spec)
    like = fxflow.ShapeDtypeStruct((32, 16), "float32", sharding=where)
    for function in (mapped, both):
        lowered = fxflow.jit(function).lower(like)
        assert lowered.as_text().count(TRITON) == 1
        assert "all-reduce" in lowered.compile(NO_SPILLS).as_text()


def test_which_devices() -> None:
    class Device:
        def __init__(self, capability: str) -> None:
            self.compute_capability = capability

    found = [runs_triton(Device(c)) for c in ("7.5", "8.0", "9.0", "10.0", "gfx942")]  # type: ignore[arg-type]
    assert found == [False, True, True, True, False]
    assert not runs_triton(fxflow.devices("cpu")[0])


def test_why_a_kernel_is_not_compiled() -> None:
    x = fnp.ones((3, 4))
    p = params_of(accumulate, x)
    assert "programs in order" in why_no_triton(p, [x.aval])
    assert triton_call(p, [x.aval]) is None
    sort = kernels.call(lambda x, o: o.set(fnp.sort(x[...])), x)
    text = kernels.explain(sort, x)
    assert re.search(
        r"on an NVIDIA GPU: operations on arrays \(the compiler does not know sort: "
        r".*test_triton_call.py:\d+",
        text,
    )
    assert "tt.func public @norm(" in kernels.explain(norm, x, x[0], platform="cuda")
    assert "tt.func" not in kernels.explain(norm, x, x[0])
