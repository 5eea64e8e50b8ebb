"""Meshes and specs."""

import copy
import pickle
import threading

import numpy as np
import pytest

import fxflow
from fxflow.devices import PlacementError, clients
from fxflow.devices.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    P,
    PartitionSpec,
    current_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
)
from fxflow.devices.shardings import NamedSharding


def test_a_mesh_is_devices_with_names() -> None:
    mesh = make_mesh((2, 4), ("x", "y"))
    assert dict(mesh.shape) == {"x": 2, "y": 4}
    assert mesh.size == 8 and not mesh.empty and not mesh.is_multi_process
    assert mesh.device_ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.flat == tuple(fxflow.devices()[:8])
    assert mesh.local_devices == list(mesh.flat)
    assert mesh.abstract_mesh == AbstractMesh((2, 4), ("x", "y"))
    assert repr(mesh) == "Mesh('x': 2, 'y': 4)"
    assert not mesh.devices.flags.writeable


def test_equal_meshes_hash_alike() -> None:
    a, b = make_mesh((2, 2), ("x", "y")), make_mesh((2, 2), ("x", "y"))
    assert a == b and hash(a) == hash(b) and a is not b
    assert a != make_mesh((2, 2), ("x", "z"))
    assert a != Mesh(a.devices[::-1], ("x", "y"))


def test_an_axis_of_minus_one_takes_the_remaining_devices() -> None:
    assert make_mesh((-1, 2), ("x", "y")).axis_sizes == (4, 2)
    assert Mesh(
        ["cpu:1", "/job:worker/task:0/device:cpu:3"], "x"
    ).device_ids.tolist() == [
        1,
        3,
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: make_mesh((9,), ("x",)),
            "needs 9 devices, there are 8.*num_cpu_devices",
        ),
        (lambda: make_mesh((3, -1), ("x", "y")), "8 devices cannot be divided by 3"),
        (lambda: make_mesh((0,), ("x",)), "must be positive"),
        (lambda: make_mesh((2, 2), ("x",)), "needs 2 axis names"),
        (lambda: make_mesh((2, 2), ("x", "x")), "must differ"),
        (lambda: Mesh([fxflow.devices()[0]] * 2, "x"), "occurs twice"),
        (lambda: make_mesh((2,), ("x",)).length(("q",)), "no axis 'q'.*'x'"),
        (lambda: set_mesh("x"), "expected a Mesh, got str"),
    ],
)
def test_impossible_meshes_are_refused(make, words) -> None:
    with pytest.raises(PlacementError, match=words):
        make()


def test_meshes_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(make_mesh((1,), ("x",)))


def test_specs() -> None:
    spec = P("x", None, ("y", "z"))
    assert spec == PartitionSpec("x", None, ["y", "z"], None) != P("x")
    assert (
        hash(P("x", None)) == hash(P("x")) and P(("x",)) == P("x") and P(()) == P(None)
    )
    assert spec.names() == (("x",), (), ("y", "z"))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert repr(P(P.UNCONSTRAINED, None)) == "PartitionSpec(UNCONSTRAINED, None)"
    assert P("x") == ("x",) and P("x") != "x"


def test_the_current_mesh() -> None:
    mesh = make_mesh((2,), ("x",))
    with pytest.raises(PlacementError, match="no current mesh"):
        get_mesh()
    with set_mesh(mesh) as inside:
        assert inside is mesh and get_mesh() is mesh
        with make_mesh((1,), ("y",)) as other:
            assert get_mesh() is other
        assert get_mesh() is mesh
        seen = []
        thread = threading.Thread(target=lambda: seen.append(current_mesh()))
        thread.start()
        thread.join()
        assert seen == [None]
    assert current_mesh() is None
    undo = set_mesh(mesh)
    assert get_mesh() is mesh
    with undo:
        pass
    assert current_mesh() is None


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("cpu", 0),
        ("cpu:5", 5),
        ("/device:cpu:2", 2),
        ("/job:worker/task:0/device:CPU:3", 3),
        ("/job:worker/replica:0/task:0/device:cpu:1", 1),
    ],
)
def test_device_names(name, number) -> None:
    assert clients.resolve(name) == fxflow.devices("cpu")[number]
    assert fxflow.device_put(1.0, name).device == fxflow.devices("cpu")[number]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cpu:99", "no device 'cpu:99'"),
        ("cpu:x", "is not a device name"),
        ("/task:0/cpu:1", "is not a device name: write"),
        ("/job:worker/task:7/device:cpu:0", "available devices: none"),
    ],
)
def test_invalid_device_names_are_refused(name, words) -> None:
    with pytest.raises(PlacementError, match=words):
        clients.resolve(name)
    with pytest.raises(TypeError, match="must be a Device or its name"):
        clients.resolve(3)


def test_order_of_the_grid() -> None:
    grid = np.array(fxflow.devices()[:4]).reshape(2, 2).T
    assert Mesh(grid, ("a", "b")).device_ids.tolist() == [[0, 2], [1, 3]]


def test_parts_of_this_process() -> None:
    mesh = Mesh(np.array(fxflow.devices()[:4]).reshape(2, 2), ("a", "b"))
    assert mesh.local_mesh == mesh
    assert mesh.shape_tuple == (("a", 2), ("b", 2))


def test_axis_types() -> None:
    auto, explicit = AxisType.Auto, AxisType.Explicit
    mesh = make_mesh((2, 2), ("a", "b"), axis_types=(auto, explicit))
    assert mesh.axis_types == (auto, explicit)
    assert (mesh.auto_axes, mesh.explicit_axes) == (("a",), ("b",))
    assert str(mesh) == "Mesh('a': 2, 'b': 2, axis_types=(Auto, Explicit))"
    other = make_mesh((2, 2), ("a", "b"))
    assert other != mesh and other.axis_types == (auto, auto)
    assert mesh.abstract_mesh.axis_types == mesh.axis_types
    assert make_mesh((2,), ("a",), axis_types=explicit).axis_types == (explicit,)
    for wrong in [(auto,), "auto", (auto, "explicit")]:
        with pytest.raises(PlacementError, match="an AxisType for each of 2 axes"):
            make_mesh((2, 2), ("a", "b"), axis_types=wrong)
    with pytest.raises(PlacementError, match="become manual in shard_map"):
        make_mesh((2,), ("a",), axis_types=(AxisType.Manual,))


def test_specs_name_unreduced_and_reduced_axes() -> None:
    spec = P("a", None, unreduced={"c", "b"}, reduced={"d"})
    assert repr(spec) == "PartitionSpec('a', None, unreduced={'b', 'c'}, reduced={'d'})"
    assert spec == P("a", unreduced={"b", "c"}, reduced={"d"}) != P("a")
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert spec.with_entries(["e"]) == P("e", unreduced={"b", "c"}, reduced={"d"})
    with pytest.raises(AttributeError, match="immutable"):
        spec.unreduced = frozenset()
    with pytest.raises(PlacementError, match="unreduced must be a set of names"):
        P("a", unreduced="b")
    for wrong in ({"unreduced": {"a"}}, {"unreduced": {"b"}, "reduced": {"b"}}):
        with pytest.raises(PlacementError, match="names a mesh axis again"):
            P("a", **wrong)
    with pytest.raises(PlacementError, match="only explicit axes can be unreduced"):
        NamedSharding(make_mesh((2,), ("b",)), P("a", unreduced={"b"}))
    explicit = make_mesh((2,), ("b",), axis_types=AxisType.Explicit)
    with pytest.raises(PlacementError, match="has no axis 'c'"):
        NamedSharding(explicit, P(unreduced={"c"}))


def test_specs_cannot_be_subclassed() -> None:
    with pytest.raises(TypeError, match="cannot be subclassed"):

        class Spec(P):
            pass


def test_an_abstract_mesh_with_parts_replaced() -> None:
    mesh = AbstractMesh((2, 4), ("a", "b"))
    assert mesh.update(axis_sizes=(4, 2)) == AbstractMesh((4, 2), ("a", "b"))
    explicit = mesh.update(axis_types=AxisType.Explicit)
    assert explicit.explicit_axes == ("a", "b") and mesh.auto_axes == ("a", "b")
    with pytest.raises(PlacementError, match="needs 1 axis name,"):
        mesh.update(axis_sizes=(8,))
