"""`fxflow.ffi`: kernels that a compiler here made, called from programs."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, ffi
from fxflow.errors import ArgumentError, CompileError, NotDifferentiableError

SOURCE = Path(__file__).parent / "ffi_kernels.cc"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernels, compiled and registered."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    built = tmp_path_factory.mktemp("ffi") / "kernels.so"
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared"]
    command += ["-I", ffi.include_dir(), str(SOURCE), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(built))
    for name in ("Axpy", "Softmax", "Raw", "Attributes", "Count"):
        ffi.register_ffi_target(f"test_{name.lower()}", getattr(library, name))
    return library


def struct(x, shape=None):
    return fxflow.ShapeDtypeStruct(x.shape if shape is None else shape, "float32")


def axpy(alpha, x, y, **options):
    call = ffi.ffi_call("test_axpy", struct(x), **options)
    return call(x, y, alpha=np.float32(alpha))


@fxflow.custom_vjp
def softmax(x):
    return ffi.ffi_call("test_softmax", struct(x), vmap_method="broadcast_all")(x)


def _forward(x):
    out = softmax(x)
    return out, out


def _backward(out, ct):
    return (out * (ct - fnp.sum(out * ct, -1, keepdims=True)),)


softmax.defvjp(_forward, _backward)

X = np.float32([[1, 2, 3], [-1, 0, 5]])

# -- values, transformations -----------------------------------------------------------


def test_the_called_function_gives_its_values_by_every_path(
    library: ctypes.CDLL,
) -> None:
    want = 2.5 * X + 1
    for run in (axpy, fxflow.jit(axpy, static_argnums=0)):
        np.testing.assert_allclose(run(2.5, fnp.asarray(X), fnp.ones((2, 3))), want)
    got = axpy(2.5, X, np.ones((2, 3), np.float32))  # NumPy arrays, as anywhere
    np.testing.assert_allclose(got, want)
    assert axpy(1, fnp.zeros(0), fnp.zeros(0)).shape == (0,)


def test_softmax_under_transformations(library: ctypes.CDLL) -> None:
    x = fnp.asarray(X)
    same = fxflow.nn.softmax

    def loss(f):
        return lambda x: fnp.sum(fnp.sin(f(x)))

    for transform in (
        lambda f: f,
        fxflow.jit,
        fxflow.vmap,
        lambda f: fxflow.jit(fxflow.vmap(f)),
        lambda f: fxflow.grad(loss(f)),
        lambda f: fxflow.jit(fxflow.vmap(fxflow.grad(loss(f)))),
        lambda f: lambda x: fxflow.lax.scan(lambda c, r: (c, f(r)), 0, x)[1],
    ):
        got, want = transform(softmax)(x), transform(same)(x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
)
def test_vmap_methods(library: ctypes.CDLL, method: str) -> None:
    x, y = fnp.asarray(X), fnp.ones(3)
    both = fxflow.vmap(lambda a: axpy(2, a, 10 * a, vmap_method=method))
    np.testing.assert_allclose(both(x), 12 * X)
    one = fxflow.vmap(lambda a: axpy(2, a, y, vmap_method=method))
    if method == "expand_dims":  # y comes as [1, 3], which this kernel refuses
        with pytest.raises(fxflow.devices.RuntimeFailure, match="must have one size"):
            one(x)
    else:
        np.testing.assert_allclose(fxflow.jit(one)(x), 2 * X + 1)


def test_vmap_has_to_be_said(library: ctypes.CDLL) -> None:
    with pytest.raises(ArgumentError, match=r"'test_axpy'\): say how with vmap_method"):
        fxflow.vmap(lambda a: axpy(2, a, a))(X)


def test_no_derivative_of_its_own(library: ctypes.CDLL) -> None:
    with pytest.raises(NotDifferentiableError, match=r"fxflow\.custom_vjp"):
        fxflow.grad(lambda x: fnp.sum(axpy(2, x, x)))(fnp.asarray(X))


def test_errors_of_the_kernel(library: ctypes.CDLL) -> None:
    with pytest.raises(fxflow.devices.RuntimeFailure, match="alpha must not be 0"):
        fxflow.jit(lambda x: axpy(0, x, x))(X).block_until_ready()
    with pytest.raises(CompileError, match=r"test_absent.* on a platform Host"):
        ffi.ffi_call("test_absent", struct(X))(X)


# -- memory ----------------------------------------------------------------------------


def test_layouts(library: ctypes.CDLL) -> None:
    def raw(**layouts):
        outs = (struct(X), fxflow.ShapeDtypeStruct((1,), "int32"))
        return ffi.ffi_call("test_raw", outs, vmap_method="broadcast_all", **layouts)

    x = fnp.asarray(X)
    for call in (raw(), raw(input_layouts=[None]), raw(input_layouts=[(0, 1)])):
        assert call(x)[0].tolist() == X.tolist()
    # As columns lie in memory, read as rows; and the other way round.
    columns = X.T.reshape(2, 3)
    assert raw(input_layouts=[(1, 0)])(x)[0].tolist() == columns.tolist()
    rows = X.reshape(3, 2).T
    out = raw(output_layouts=[(1, 0), None])
    assert fxflow.jit(out)(x)[0].tolist() == rows.tolist()
    both = fxflow.vmap(raw(input_layouts=[(1, 0)], output_layouts=[(1, 0), None]))
    stacked = fnp.stack([x, 2 * x])
    np.testing.assert_array_equal(both(stacked)[0], stacked)


def test_aliases(library: ctypes.CDLL) -> None:
    def raw(aliases):
        outs = (struct(X), fxflow.ShapeDtypeStruct((1,), "int32"))
        return ffi.ffi_call("test_raw", outs, input_output_aliases=aliases)

    def shares(aliases):
        return fxflow.jit(lambda x: raw(aliases)(fnp.sin(x))[1])(X).tolist()

    assert shares({0: 0}) == [1]
    assert shares({}) == [0]
    # An operand that is used again is copied first.
    kept = fnp.asarray(X)
    out, _ = raw({0: 0})(kept)
    assert out.tolist() == kept.tolist() == X.tolist()


# -- attributes, effects, states -------------------------------------------------------


def test_attributes_arrive_in_the_kernel(library: ctypes.CDLL) -> None:
    call = ffi.ffi_call("test_attributes", fxflow.ShapeDtypeStruct((7,), "float32"))
    given = {
        "flag": True,
        "integer": -(2**40),
        "number": 1e-3,
        "small": np.int8(-3),
        "text": 'a "quoted" \n\\ é',
        "list": (3, 4, 5),
        "inner": {"x": np.float32(np.inf)},
    }
    want = [1, -(2.0**40), 1e-3, -3, 16, 5, np.inf]
    np.testing.assert_allclose(fxflow.jit(lambda: call(**given))(), np.float32(want))
    given["list"] = np.zeros(0, np.int64)
    assert float(call(**given)[5]) == -1


@pytest.mark.parametrize("value", [None, 1j, 2**70, [[1], 2], fnp.ones(2), object()])
def test_invalid_attributes_are_refused(value: object) -> None:
    call = ffi.ffi_call("test_axpy", struct(X))
    with pytest.raises(ArgumentError, match="the attribute alpha must be a bool"):
        call(X, X, alpha=value)


def test_side_effects(library: ctypes.CDLL) -> None:
    library.Called()
    one = fxflow.ShapeDtypeStruct((1,), "int32")

    def f(x, has_side_effect):
        ffi.ffi_call("test_count", one, has_side_effect=has_side_effect)()
        return x + 1

    run = fxflow.jit(f, static_argnums=1)
    for has_side_effect, count in ((True, 1), (False, 0)):
        run(X, has_side_effect).block_until_ready()
        assert library.Called() == count
    mesh = fxflow.make_mesh((4,), ("i",))
    x = fxflow.device_put(fnp.ones(4), NamedSharding(mesh, P("i")))
    with pytest.raises(ArgumentError, match="call it under shard_map, where each"):
        run(x, True)

    def part(x):
        return x + ffi.ffi_call("test_count", one, has_side_effect=True)()

    by_part = fxflow.shard_map(part, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    assert sorted(fxflow.jit(by_part)(x).tolist()) == [2.0, 3.0, 4.0, 5.0]
    assert library.Called() == 4


def test_states(library: ctypes.CDLL) -> None:
    addresses = {}
    for key, name in (("type_id", "StepsId"), ("type_info", "StepsInfo")):
        function = getattr(library, name)
        function.restype = ctypes.c_void_p
        addresses[key] = function()
    ffi.register_ffi_type("test_steps", addresses)
    stages = {"instantiate": library.StepsNew, "execute": library.StepsRun}
    ffi.register_ffi_target("test_steps", stages)
    ffi.register_ffi_target("test_steps", stages)
    run = fxflow.jit(ffi.ffi_call("test_steps", struct(X, (1,))))
    zero = fnp.zeros(1)
    assert [float(run(zero)[0]) for _ in range(3)] == [1.0, 2.0, 3.0]


# -- several devices -------------------------------------------------------------------


def test_shardings(library: ctypes.CDLL) -> None:
    mesh = fxflow.make_mesh((4,), ("i",))
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)
    want = fxflow.nn.softmax(fnp.asarray(x))
    divided = fxflow.device_put(x, NamedSharding(mesh, P("i")))
    library.RowsSeen()
    # Reading waits for one device, and all of them count.
    whole = fxflow.jit(softmax)(divided).block_until_ready()
    assert library.RowsSeen() == 4 * 8  # each device has the whole
    np.testing.assert_allclose(whole, want, rtol=1e-6)
    by_part = fxflow.shard_map(softmax, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    parts = fxflow.jit(by_part)(divided).block_until_ready()
    assert library.RowsSeen() == 8
    np.testing.assert_allclose(parts, want, rtol=1e-6)


# -- mistakes --------------------------------------------------------------------------


def test_registering_twice(library: ctypes.CDLL) -> None:
    ffi.register_ffi_target("test_axpy", ffi.pycapsule(library.Axpy))  # the same
    with pytest.raises(ArgumentError, match="'test_axpy' is already registered"):
        ffi.register_ffi_target("test_axpy", library.Softmax)


@pytest.mark.parametrize("what", [None, "Axpy", lambda: None, 3.0])
def test_no_function(what: object) -> None:
    with pytest.raises(ArgumentError, match="function of a library that ctypes"):
        ffi.register_ffi_target("test_nothing", what)
    with pytest.raises(ArgumentError, match="function of a library that ctypes"):
        ffi.pycapsule(what)


def test_invalid_stages_and_types_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"stages are instantiate, .* got 'run'"):
        ffi.register_ffi_target("test_nothing", {"run": None})
    with pytest.raises(ArgumentError, match="keys 'type_id' and 'type_info'"):
        ffi.register_ffi_type("test_nothing", {"type_id": 1})
    with pytest.raises(ArgumentError, match="a PyCapsule or an address, got str"):
        ffi.register_ffi_type("test_nothing", {"type_id": "a", "type_info": "b"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vmap_method": "all"}, "vmap_method is one of .* got 'all'"),
        ({"input_layouts": [(0, 1)]}, "input_layouts has 1 entries for 2 arrays"),
        ({"input_layouts": [(0, 1), (0, 0)]}, r"major to minor, such as \(0, 1\); got"),
        ({"output_layouts": (0, 2)}, r"output_layouts gives for f32\[2,3\]"),
        ({"input_output_aliases": {2: 0}}, "there are 2 operands and 1 results"),
        ({"legacy_backend_config": "a"}, "below 4; pass attributes by name"),
        ({"custom_call_api_version": 2}, "attributes need custom_call_api_version 4"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        ffi.ffi_call("test_axpy", struct(X), **options)(X, X, alpha=1.0)


def test_invalid_operands_are_refused() -> None:
    call = ffi.ffi_call("test_axpy", struct(X), input_output_aliases={0: 0})
    with pytest.raises(ArgumentError, match=r"operand 0, f32\[3\], cannot share"):
        call(fnp.ones(3))
    with pytest.raises(TypeError, match="operand 1 is"):
        call(X, "y")
    with pytest.raises(ArgumentError, match="target_name must be a string, got 3"):
        ffi.ffi_call(3, struct(X))
    with pytest.raises(ArgumentError, match="result_shape_dtypes holds arrays"):
        ffi.ffi_call("test_axpy", "f32")


def test_the_module_is_listed_with_its_header() -> None:
    assert set(ffi.__all__) <= set(dir(ffi)) and "ffi" in dir(fxflow)
    assert (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").is_file()
