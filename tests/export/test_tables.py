"""The table of a file: which function takes and returns the parameters."""

import struct

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, export, optim
from fxflow.core.arrays import Aval
from fxflow.errors import ArgumentError, ExportError
from fxflow.export import tables

STATE = {"w": np.ones(3, np.float32), "n": np.zeros((), np.int32)}
X = np.ones(3, np.float32)
FUNCTIONS = {
    "init": (lambda n: {"w": fnp.ones(3) * n, "n": fnp.int32(0)}, (2.0,)),
    "step": (lambda s, x: ({"w": s["w"] + x, "n": s["n"] + 1}, x.sum()), (STATE, X)),
    "more": (lambda s, x: (s, {"a": x}, (x, x)), (STATE, X)),
    "only": (lambda s, x: {"y": s["w"] @ x}, (STATE, X)),
    "other": (lambda x: x * 2, (X,)),
}


@pytest.fixture(scope="module")
def functions():
    return {
        name: export.export(fxflow.jit(f))(*args)
        for name, (f, args) in FUNCTIONS.items()
    }


@pytest.mark.parametrize(
    "name, takes, returns, names",
    [
        ("init", False, 2, ()),
        ("step", True, 2, ("output",)),
        ("more", True, 2, ("output.0.a", "output.1.0", "output.1.1")),
        ("only", True, 0, ("output.y",)),
        ("other", False, 0, ("output",)),
    ],
)
def test_roles(functions, name, takes, returns, names):
    params = tables.first_argument(functions["step"])
    assert tables.role(functions[name], params) == (takes, returns, names)
    bare = tables.role(functions["other"], None)
    assert bare == (False, 0, ("output",))


def test_names_that_are_the_same():
    """`a.b` is a key, or a path of two."""
    x = {"a.b": X, "a": {"b": X}}
    made = export.export(fxflow.jit(lambda x, y: x))(x, X)
    assert tables.argument_names(made) == ["0:x.a.b", "1:x.a.b", "2:y"]
    assert tables.role(made, None).names == ("0:output.a.b", "1:output.a.b")


def test_names_that_are_refused(tmp_path):
    long = export.export(fxflow.jit(lambda x: x))({"k" * 70_000: X})
    with pytest.raises(ArgumentError, match=r"at most 65535 bytes .* 'x\.kkk.*\.\.\.'"):
        export.save(tmp_path / "model.fx", long)
    broken = export.export(fxflow.jit(lambda x: {"\udc80": x}))(X)
    with pytest.raises(ExportError, match=r"the text '\\udc80' has no UTF-8"):
        export.save(tmp_path / "model.fx", broken)
    assert not [*tmp_path.iterdir()]


def test_several_functions_and_a_state(functions, tmp_path):
    path = tmp_path / "model.fx"
    export.save(path, functions, params=STATE)
    bundle = export.load(path)
    assert list(bundle.functions) == list(functions)
    assert repr(bundle) == "<Bundle of init, step, more, only, other with parameters>"
    assert bundle.functions["step"].in_names == ("s.n", "s.w", "x")
    state, total = bundle.functions["step"].call(bundle.params, X)
    np.testing.assert_array_equal(state["w"], 2 * np.ones(3))
    assert int(state["n"]) == 1 and float(total) == 3
    data = path.read_bytes()
    start, mark = struct.unpack("<Q8s", data[-16:])
    assert mark == tables.MARK and struct.unpack("<I", data[start : start + 4]) == (1,)


def test_the_state_of_an_optimizer_needs_no_registration(tmp_path):
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-2))
    params = {"w": fnp.ones(3)}
    state = (params, optimizer.init(params))

    def step(state, x):
        params, rest = state
        grads = fxflow.grad(lambda p: fnp.sum(p["w"] * x) ** 2)(params)
        updates, rest = optimizer.update(grads, rest, params)
        return (optim.apply_updates(params, updates), rest), grads["w"]

    made = export.export(fxflow.jit(step))(state, X)
    export.save(tmp_path / "step.fx", {"step": made}, params=state)
    bundle = export.load(tmp_path / "step.fx")
    assert fxflow.tree.structure(bundle.params) == fxflow.tree.structure(state)
    assert tables.role(made, tables.first_argument(made)).returns == len(
        fxflow.tree.leaves(state)
    )
    given, expected = bundle.functions["step"].call(bundle.params, X), step(state, X)
    for a, b in zip(fxflow.tree.leaves(given), fxflow.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_bad_functions_are_refused(functions, tmp_path):
    path = tmp_path / "model.fx"
    for given, message in (
        ({}, "at least one function"),
        ({"": functions["step"]}, "name of a function must be a text"),
        ({"a\0": functions["step"]}, "name of a function must be a text"),
        ({"step": step_of}, "expected an Exported for step"),
    ):
        with pytest.raises(ArgumentError, match=message):
            export.save(path, given)
    with pytest.raises(ArgumentError, match="compiled=True is for a file with one"):
        export.save(path, functions, compiled=True)
    with pytest.raises(ArgumentError, match="but params has"):
        export.save(path, functions, params={"w": X})
    assert not path.exists()


def step_of():
    """Stands in for a function that was not exported."""


def test_a_missing_program_is_found(functions, tmp_path):
    path = tmp_path / "model.fx"
    export.save(path, functions)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"name": "only"', b'"name": "onlz"'))
    with pytest.raises(ExportError, match="damaged"):
        export.load(path)


@pytest.mark.parametrize(
    "spec",
    [
        (),
        ("b",),
        (None, "a"),
        ("a", "b"),
        (("b", "a"),),
        (None, ("a", "b")),
        ("b", None),
    ],
    ids=str,
)
def test_layouts_over_devices(spec):
    """The numbers of the parts are those of the sharding."""
    mesh = fxflow.make_mesh((2, 4), ("a", "b"))
    where = NamedSharding(mesh, P(*spec))
    x = fnp.zeros((8, 16))
    made = export.export(fxflow.jit(lambda x: x, in_shardings=where))(x)
    data = tables._layout(made.in_avals[0], made.in_layouts[0], 8)
    index = where.devices_indices_map((8, 16))
    if not spec:
        assert data == b"\0"
        return
    assert len(data) == 1 + 4 * (2 + 8) and data[0] == 1
    rows, columns, *numbers = struct.unpack("<10I", data[1:])
    for device, number in zip(mesh.devices.flat, numbers, strict=True):
        row, column = divmod(number, columns)
        for part, size, k, given in zip(
            (row, column), (8, 16), (rows, columns), index[device], strict=True
        ):
            assert given.indices(size)[:2] == (part * size // k, (part + 1) * size // k)


def test_layouts_that_are_not_in_equal_parts():
    mesh = fxflow.make_mesh((2,), ("a",))
    where = NamedSharding(mesh, P("a"))
    made = export.export(fxflow.jit(lambda x: x, in_shardings=where))(fnp.zeros(4))
    (layout,) = made.in_layouts
    assert tables._layout(Aval((3,), fnp.dtype("float32")), layout, 2) == b"\2"
    assert tables._layout(Aval((4,), fnp.dtype("float32")), layout, 4) == b"\2"
    assert tables._layout(Aval((4,), fnp.dtype("float32")), None, 2) == b"\0"
