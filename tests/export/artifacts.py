"""Artifacts that JAX 0.10.2 wrote, and checks with JAX where it is installed.

`golden/*.jax` were made by `python -m tests.export.artifacts` in an environment with
jax and flatbuffers; it also loads what fxflow wrote (`--load`).
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
#: A Python that has jax: this one, or another that the environment names.
JAX_PYTHON = os.environ.get("FXFLOW_JAX_PYTHON") or (
    sys.executable
    if all(PathFinder.find_spec(name) for name in ("jax", "flatbuffers"))
    else ""
)
DTYPES = (
    "bool int8 uint16 uint64 bfloat16 float16 float64 complex128 float8_e4m3fn int4"
)


def golden(name: str) -> bytes:
    """Returns an artifact that JAX wrote."""
    return (GOLDEN / f"{name}.jax").read_bytes()


def write(folder: Path) -> None:
    """Writes the artifacts with JAX."""
    import jax
    import jax.numpy as jnp
    from jax import export

    def save(name, function, *args, platforms=None, order=0, **options):
        function.__name__ = name
        jitted = jax.jit(function, **options)
        made = export.export(jitted, platforms=platforms)(*args)
        (folder / f"{name}.jax").write_bytes(made.serialize(order))

    # Keep this file's line numbers out of the programs.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    waves = lambda x, d: ({"y": jnp.sin(x) * d["a"]}, (d["b"].sum(), None))
    d = {"a": jnp.float32(2), "b": jnp.arange(4), "c": jnp.arange(2)}
    save("waves", waves, jnp.ones(3), d, order=2)
    split = lambda key: (jax.random.split(key), jax.random.normal(key, (2,)))
    save("split", split, jax.random.key(0))
    everywhere = ("cpu", "cuda", "tpu")
    save(
        "everywhere",
        lambda x: jnp.linalg.cholesky(x),
        jnp.ones((2, 2)),
        platforms=everywhere,
    )
    b, t = export.symbolic_shape("b, 2*t")
    struct = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    sizes = lambda x, y: (x.reshape(-1) + 1, jnp.concatenate([x[:, 0], y]))
    save("sizes", sizes, struct(b, t), struct(b), order=1)
    mesh = jax.sharding.Mesh(jax.devices()[:2], "i")
    where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    halves = lambda x: (x * 2, x.sum())
    save("halves", halves, jnp.arange(8.0), order=1, in_shardings=where)
    jax.config.update("jax_enable_x64", True)
    save("dtypes", lambda *a: a, *[jnp.ones((2,), d) for d in DTYPES.split()])


def load(folder: Path) -> None:
    """Loads fxflow's artifacts with JAX, and checks the results."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export

    def loaded(name):
        return export.deserialize(bytearray((folder / name).read_bytes()))

    d = {"a": jnp.float32(2), "b": jnp.arange(4), "c": jnp.arange(2)}
    waves, x = loaded("waves"), jnp.arange(3.0)
    result, (total, nothing) = waves.call(x, d)
    np.testing.assert_allclose(result["y"], 2 * np.sin(x), rtol=1e-6)
    assert int(total) == 6 and nothing is None
    first = jax.grad(lambda x: waves.call(x, d)[0]["y"].sum())
    second = jax.grad(lambda x: first(x).sum())
    np.testing.assert_allclose(first(x), 2 * np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(second(x), -2 * np.sin(x), atol=1e-6)
    key = jax.random.key(5)
    keys, values = loaded("split").call(key)
    assert (
        jax.random.key_data(keys) == jax.random.key_data(jax.random.split(key))
    ).all()
    np.testing.assert_allclose(values, jax.random.normal(key, (2,)), rtol=1e-6)
    matrix = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    captured = np.arange(4.0).reshape(2, 2)
    out = loaded("everywhere").call(matrix)
    np.testing.assert_allclose(out, jnp.linalg.cholesky(matrix) + captured, rtol=1e-6)
    halves = loaded("halves")
    mesh = jax.sharding.Mesh(jax.devices()[:2], "i")
    x = jax.device_put(jnp.arange(8.0), halves.in_shardings_jax(mesh)[0])
    np.testing.assert_array_equal(halves.call(x)[0], 2 * np.arange(8.0))
    np.testing.assert_array_equal(jax.grad(lambda x: halves.call(x)[1])(x), np.ones(8))
    print("loaded")


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    if sys.argv[1:2] == ["--load"]:
        load(Path(sys.argv[2]))
    else:
        write(GOLDEN)
