"""States are restored exactly, onto other devices, in part, under other names."""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import P, random, tree
from fxflow import numpy as fnp
from fxflow.errors import (
    ArgumentError,
    CheckpointError,
    DamagedCheckpointError,
)
from fxflow.train import checkpoint
from fxflow.train.checkpoint.storage import Local
from tests.train.checkpoint.states import assert_same, plain, state


def places(tmp_path: Path) -> list[Any]:
    """A folder and a TensorStore store, which are the two formats of arrays."""
    pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")
    return [tmp_path / "folder", {"driver": "file", "path": str(tmp_path / "store")}]


def test_a_checkpoint_that_version_0_1_wrote_is_restored() -> None:
    # The files of `golden` are not written again: newer versions must read them.
    kept = Path(__file__).parent / "golden"
    assert_same(checkpoint.restore(kept, state()), state())


def test_every_kind_of_leaf_is_restored(tmp_path: Path) -> None:
    for where in places(tmp_path):
        checkpoint.save(where, state(), metadata={"epoch": 3})
        assert_same(checkpoint.restore(where, state()), state())
        assert checkpoint.metadata(where) == {"epoch": 3}


def test_everything_is_restored_without_like(tmp_path: Path) -> None:
    for where in places(tmp_path):
        checkpoint.save(where, state())
        found = checkpoint.restore(where)
        assert type(found["keys"]) is tuple and found["odd"] == state()["odd"]
        assert found["params"]["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert isinstance(found["params"]["w"], np.ndarray)
        assert found["params"]["b"].dtype == fnp.bfloat16
        assert plain(found["keys"][0]) == plain(random.key(3))
        # Named tuples become dictionaries.
        assert int(found["optimizer"][0]["count"]) == 0


def test_a_single_array_is_saved_and_restored(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, fnp.ones(3))
    assert checkpoint.restore(tmp_path, fnp.zeros(3)).tolist() == [1, 1, 1]


def test_an_earlier_checkpoint_is_replaced(tmp_path: Path) -> None:
    for n in range(3):
        checkpoint.save(tmp_path, {"n": fnp.array(n)})
    assert checkpoint.restore(tmp_path)["n"] == 2
    names = sorted(path.name for path in tmp_path.iterdir())
    assert (names[0], names[2:]) == (".writer", ["tree.json"])


# -- onto other devices ----------------------------------------------------------------


def over(shape: tuple[int, ...], names: tuple[str, ...], *spec: Any) -> Any:
    return fxflow.NamedSharding(fxflow.make_mesh(shape, names), P(*spec))


SHARDINGS: list[Callable[[], Any]] = [
    lambda: over((8,), ("x",), "x"),
    lambda: over((2, 4), ("x", "y"), "y", "x"),
    lambda: over((2,), ("x",), None, "x"),
    lambda: over((4,), ("x",)),
    lambda: fxflow.SingleDeviceSharding(fxflow.devices()[5]),
]


@pytest.mark.parametrize("source", range(len(SHARDINGS)))
def test_states_are_restored_onto_other_devices(tmp_path: Path, source: int) -> None:
    whole = np.arange(64, dtype=np.float32).reshape(8, 8)
    keys = random.split(random.key(0), (8, 8))
    saved = fxflow.device_put({"x": whole, "k": keys}, SHARDINGS[source]())
    for where in places(tmp_path):
        checkpoint.save(where, saved)
        for make in SHARDINGS:
            target = make()
            like = fxflow.ShapeDtypeStruct((8, 8), np.float32, sharding=target)
            found = checkpoint.restore(where, {"x": like, "k": keys})
            assert found["x"].sharding.is_equivalent_to(target, 2)
            np.testing.assert_array_equal(found["x"], whole)
            moved = checkpoint.restore(
                where, {"x": whole, "k": keys}, shardings={"x": target, "k": None}
            )
            assert moved["x"].devices() == target.device_set
            assert plain(moved["k"]) == plain(keys)


def test_arrays_are_restored_onto_their_devices(tmp_path: Path) -> None:
    sharding = over((8,), ("x",), "x")
    placed = fxflow.device_put(fnp.arange(8), sharding)
    checkpoint.save(tmp_path, [placed, fnp.arange(2)])
    found = checkpoint.restore(tmp_path, [placed, fnp.arange(2)])
    assert found[0].sharding == sharding and found[0].committed
    assert not found[1].committed


def test_replicated_parts_are_written_once(tmp_path: Path) -> None:
    _, where = places(tmp_path)
    sharding = over((2, 4), ("x", "y"), "x")
    checkpoint.save(where, fxflow.device_put(fnp.ones((8, 8)), sharding))
    chunks = [p for p in (tmp_path / "store").rglob("*") if p.parent.name == "0"]
    # [c/0/0, c/1/0] of half the rows each, though eight devices have them.
    assert len([p for p in (tmp_path / "store").rglob("c/*/*") if p.is_file()]) == 2
    assert chunks


# -- in part, renamed, converted -------------------------------------------------------


def test_leaves_are_renamed_and_selected(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"encoder": {"w": fnp.ones(2)}, "old": fnp.zeros(1)})
    like = {"body": {"w": fnp.zeros(2)}, "new": fnp.full(1, 7.0)}
    options: dict[str, Any] = {"missing": "keep", "unused": "ignore"}
    for rename in (
        {"body/w": "encoder/w"},
        lambda name: name.replace("body", "encoder"),
    ):
        found = checkpoint.restore(tmp_path, like, rename=rename, **options)
        assert (found["body"]["w"].tolist(), found["new"].tolist()) == ([1, 1], [7])


def test_cast_allows_another_dtype(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"w": fnp.array([1.5, 2.0])})
    like = {"w": fnp.zeros(2, fnp.bfloat16)}
    with pytest.raises(CheckpointError, match=r"w: expected bf16\[2\], found f32\[2\]"):
        checkpoint.restore(tmp_path, like)
    found = checkpoint.restore(tmp_path, like, cast=True)["w"]
    assert (found.dtype, found.tolist()) == (fnp.bfloat16, [1.5, 2.0])


def test_mismatches_of_64_bit_numpy_arrays_are_named(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"w": fnp.ones(2)})
    with pytest.raises(CheckpointError, match=r"w: expected f64\[2\], found f32\[2\]"):
        checkpoint.restore(tmp_path, {"w": np.ones(2)})


def test_where_explicit_64_bits_are_cut_off(tmp_path: Path) -> None:
    """Under JAX's rules, NumPy arrays keep 64 bits, and fxflow's arrays do not."""
    host = {"x": np.array([0.1, 1.5]), "n": np.array([2**40]), "c": np.array([1e300j])}
    with fxflow.config.override(explicit_x64_dtypes="truncate"):
        checkpoint.save(tmp_path, host)
        assert_same(checkpoint.restore(tmp_path), host)
        assert_same(checkpoint.restore(tmp_path, host), host)
        assert_same(checkpoint.restore(tmp_path, mmap=True), host)
        like = {"x": fnp.zeros(2)}
        found = checkpoint.restore(tmp_path, like, unused="ignore")["x"]
    assert (found.dtype, found.tolist()) == (np.float32, [np.float32(0.1), 1.5])


def test_weak_types_are_restored(tmp_path: Path) -> None:
    weak = fxflow.jit(lambda: 0.5)()
    checkpoint.save(tmp_path, {"w": weak})
    found = checkpoint.restore(tmp_path, {"w": weak})["w"]
    assert found.aval is weak.aval and float(found) == 0.5


def test_mismatches_are_named(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"layers": [{"w": fnp.ones((2, 3)), "b": 1}]})
    like = {"layers": [{"w": fnp.ones((2, 4)), "b": fnp.ones(()), "c": 1.0}]}
    with pytest.raises(CheckpointError) as caught:
        checkpoint.restore(tmp_path, like)
    text = str(caught.value)
    assert "layers/0/w: expected f32[2,4], found f32[2,3]" in text
    assert "layers/0/b: expected f32[], found int" in text
    assert "layers/0/c: expected float, but it is missing" in text
    with pytest.raises(CheckpointError, match=r"layers/0/b: not expected, found int"):
        checkpoint.restore(tmp_path, {"layers": [{"w": fnp.ones((2, 3))}]})


def test_keys_of_another_generator_are_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"k": random.key(0)})
    with pytest.raises(CheckpointError, match="k: expected key<rbg"):
        checkpoint.restore(tmp_path, {"k": random.key(0, impl="rbg")})


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        (object(), "a is a object, which cannot be saved"),
        (np.array(["x"]), "a is a NumPy array of <U1"),
        (np.array([None]), "a is a NumPy array of object"),
        (np.zeros(2, [("x", "f4")]), r"a is a NumPy array of \[\('x'.*separate arrays"),
        (np.zeros(2, "f16"), "float128.*the widest float is float64"),
        (np.ma.masked_array([1, 2], [0, 1]), "whose mask would be lost"),
    ],
)
def test_leaves_that_cannot_be_saved(tmp_path: Path, leaf: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        checkpoint.save(tmp_path, {"a": leaf})
    assert list(tmp_path.iterdir()) == []


def test_leaves_with_equal_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="two leaves have the path 'a/b'"):
        checkpoint.save(tmp_path, {"a": {"b": 1}, "a/b": 2})


def test_a_missing_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint here \(no tree\.json\)"):
        checkpoint.restore(tmp_path / "absent")


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Drops root's privileges, with which every folder is writable."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def test_a_folder_without_permission_is_an_error(
    tmp_path: Path, unprivileged: None
) -> None:
    if os.geteuid() != 65534:
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    state = {"a": fnp.ones(2)}
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(PermissionError, match=str(tmp_path)):
            checkpoint.save(folder, state)
        with pytest.raises(PermissionError, match=str(tmp_path)):
            checkpoint.Checkpointer(folder).save(0, state)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        checkpoint.save(tmp_path / "file", {"a": fnp.ones(2)})


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Limits the size of files to 64 KB after its call."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("large", ["array", "text"])
def test_a_full_disk_leaves_the_old_one(
    tmp_path: Path, full: Callable[[], None], which: int, large: str
) -> None:
    where = places(tmp_path)[which]
    checkpoint.save(where, {"a": fnp.ones(2)})
    files = len(files_of(tmp_path))
    full()
    state = {"a": fnp.ones(1 << 18)} if large == "array" else {"a": "x" * (1 << 18)}
    # The message names the error and the file.
    words = rf"(?s)(?=.*{re.escape(str(tmp_path))}).*File too large"
    with pytest.raises((OSError, CheckpointError), match=words):
        checkpoint.save(where, state)
    assert checkpoint.restore(where)["a"].tolist() == [1, 1]
    checkpoint.save(where, {"a": fnp.zeros(2)})
    assert checkpoint.restore(where)["a"].tolist() == [0, 0]
    assert len(files_of(tmp_path)) == files


def test_a_second_writer_of_a_folder_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"a": 1})
    unlock = Local(tmp_path).lock()
    with pytest.raises(CheckpointError, match="another writer saves"):
        checkpoint.save(tmp_path, {"a": 2})
    unlock()
    assert checkpoint.restore(tmp_path) == {"a": 1}
    checkpoint.save(tmp_path, {"a": 3})
    assert checkpoint.restore(tmp_path) == {"a": 3}


def test_remains_of_killed_writers_are_removed(tmp_path: Path) -> None:
    left = [tmp_path / "write-1-0-0123abcd.tmp", tmp_path / "arrays-01.safetensors"]
    for path in left:
        path.write_text("half")
    checkpoint.save(tmp_path, {"a": fnp.ones(2)})
    assert not any(path.exists() for path in left)


# -- damage ----------------------------------------------------------------------------


def files_of(tmp_path: Path) -> list[Path]:
    """Returns the files of a checkpoint, without the lock of the last writer."""
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    return [path for path in files if path.name != ".writer"]


def small() -> dict[str, Any]:
    return {"w": fnp.arange(6.0).reshape(2, 3), "k": random.key(1), "n": 3}


@pytest.mark.parametrize("which", [0, 1])
def test_every_flipped_byte_is_detected(tmp_path: Path, which: int) -> None:
    where = places(tmp_path)[which]
    checkpoint.save(where, small())
    files = files_of(tmp_path)
    rng = np.random.default_rng(0)
    for path in files:
        whole = path.read_bytes()
        for at in rng.permutation(len(whole))[:60].tolist():
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            try:
                found = checkpoint.restore(where, small())
            except CheckpointError:
                continue
            # The byte has no meaning: a space in a header, or a name that is not read.
            assert_same(found, small())
        path.write_bytes(whole)
    assert_same(checkpoint.restore(where, small()), small())


@pytest.mark.parametrize("which", [0, 1])
def test_truncated_and_missing_files_are_refused(tmp_path: Path, which: int) -> None:
    where = places(tmp_path)[which]
    checkpoint.save(where, small())
    for path in files_of(tmp_path):
        whole = path.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(CheckpointError):
                checkpoint.restore(where, small())
        path.unlink()
        with pytest.raises(CheckpointError):
            checkpoint.restore(where, small())
        path.write_bytes(whole)


def test_other_versions_and_other_files_are_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, small())
    path = tmp_path / "tree.json"
    body = json.loads(path.read_text())
    body = {**body, "version": 9}
    del body["checksum"]
    checksum = zlib.crc32(json.dumps(body, indent=1).encode())
    path.write_text(json.dumps({**body, "checksum": checksum}))
    with pytest.raises(CheckpointError, match="of version 9; this fxflow reads"):
        checkpoint.restore(tmp_path)
    path.write_text(json.dumps({"some": "json"}))
    with pytest.raises(DamagedCheckpointError, match=r"is damaged, or not a file"):
        checkpoint.restore(tmp_path)


def test_other_programs_read_the_file(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    checkpoint.save(tmp_path, {"layers": [{"w": fnp.ones((2, 3))}]})
    (path,) = tmp_path.glob("*.safetensors")
    assert package.load_file(path)["layers/0/w"].shape == (2, 3)
    assert tree.leaves(json.loads((tmp_path / "tree.json").read_text())["leaves"])


# -- arrays larger than memory ---------------------------------------------------------


def test_mmap_leaves_arrays_in_the_file(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, state())
    mapped, whole = (checkpoint.restore(tmp_path, mmap=m) for m in (True, False))
    assert_same(mapped, whole)
    host = mapped["host"]
    assert isinstance(host, np.memmap) and not host.flags.writeable
    assert mapped["small"].dtype == fnp.int4  # stored as bytes
    like = {"host": np.zeros(3, np.int32), "params": {"w": fnp.zeros((2, 3))}}
    found = checkpoint.restore(tmp_path, like, unused="ignore", cast=True, mmap=True)
    assert found["host"].dtype == np.int32
    assert isinstance(found["params"]["w"], fxflow.Array)
    # Another checkpoint replaces the file.
    checkpoint.save(tmp_path, {"a": 1})
    assert host.tolist() == [0, 1, 2]


def test_mapped_elements_are_checked(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"w": np.arange(1000)})
    (path,) = tmp_path.glob("arrays-*")
    with path.open("r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(b"\xff")
    with pytest.raises(DamagedCheckpointError, match="elements of w are damaged"):
        checkpoint.restore(tmp_path, mmap=True)
    other = places(tmp_path)[1]
    checkpoint.save(other, {"w": np.arange(3)})
    with pytest.raises(CheckpointError, match="mmap=True is for a checkpoint of one"):
        checkpoint.restore(other, mmap=True)
