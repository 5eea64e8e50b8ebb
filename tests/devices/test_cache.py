"""The disk cache: hits, damaged entries, its bound, and failures of the disk."""

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fxflow._config import config
from fxflow.devices import buffers, cache
from fxflow.devices.buffers import BufferType, Placement
from fxflow.devices.compile import Executable
from fxflow.devices.compile import compile as compile_text

from . import programs

Put = Callable[..., buffers.Buffer]
KEY = bytes(range(32))


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.fxc"))


def run_add(program: Executable, place: Placement) -> list[float]:
    kind = BufferType((16,), np.dtype("f4"))
    argument = buffers.put_copy(kind, np.arange(16, dtype="f4"), place)
    handler = buffers.result_handler(kind, place, False)
    result: list[float] = buffers.to_host(program.execute([argument], [handler])[0])
    return list(result)


def test_a_cached_program_is_found_and_right(place: Placement, cache_dir: Path) -> None:
    first = compile_text(programs.ADD, place)
    second = compile_text(programs.ADD, place)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert len(entries(cache_dir)) == 1
    assert run_add(second, place) == [2.0 * i for i in range(16)]
    assert second.cost_analysis()["flops"] == 16
    info = cache.info()
    assert (info.entries, info.hits, info.misses) == (1, 1, 1)
    assert info.nbytes == entries(cache_dir)[0].stat().st_size
    assert info.enabled
    assert info.directory == str(cache_dir)


def test_other_processes_find_a_cached_program(run_python: Callable[..., str]) -> None:
    code = f"""
from fxflow.devices import buffers
from fxflow.devices.buffers import BufferType
from fxflow.devices.compile import compile
import numpy as np
place = buffers.default_placement()
program = compile({programs.ADD!r}, place)
kind = BufferType((16,), np.dtype("f4"))
argument = buffers.put_copy(kind, np.arange(16, dtype="f4"), place)
handler = buffers.result_handler(kind, place, False)
print(program.from_cache, buffers.to_host(program.execute([argument], [handler])[0])[5])
"""
    assert run_python(code) == "False 10.0\n"
    assert run_python(code) == "True 10.0\n"
    # Machine code compiled with other flags is another program.
    assert run_python(code, XLA_FLAGS="--xla_cpu_enable_fast_math=true")[:5] == "False"


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores that a process can be bound to",
)
def test_programs_for_fewer_cores_are_others(run_python: Callable[..., str]) -> None:
    """XLA writes into a program for CPUs into how many parts loops are divided."""
    code = """
import os
{}
import fxflow, fxflow.numpy as fnp
f = fxflow.jit(lambda x: fnp.exp(x) * 1.5)
text = f.lower(fnp.zeros(5_000_000)).compile().as_text()
print("outer_dimension_partitions" in text)
"""
    one = "os.sched_setaffinity(0, [*os.sched_getaffinity(0)][:1])"
    assert run_python(code.format(one)) == "False\n"
    assert run_python(code.format("")) == "True\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:10],
        lambda data: b"",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        lambda data: b"foreign" + data[7:],
        lambda data: data + b"more",
    ],
    ids=["half", "header", "empty", "payload bit", "key bit", "foreign", "longer"],
)
def test_damaged_entries_are_replaced(
    place: Placement, cache_dir: Path, damage: Callable[[bytes], bytes]
) -> None:
    compile_text(programs.ADD, place)
    (entry,) = entries(cache_dir)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    again = compile_text(programs.ADD, place)
    assert not again.from_cache
    assert run_add(again, place)[3] == 6.0
    assert len(entry.read_bytes()) == len(whole)
    assert compile_text(programs.ADD, place).from_cache


def test_entries_that_the_runtime_cannot_load_are_replaced(
    place: Placement, cache_dir: Path
) -> None:
    compile_text(programs.ADD, place)
    (entry,) = entries(cache_dir)
    cache.store(bytes.fromhex(entry.stem), b"sound, but no program")
    again = compile_text(programs.ADD, place)
    assert not again.from_cache
    assert cache.info().hits == 0
    assert compile_text(programs.ADD, place).from_cache


def test_an_entry_under_another_name_is_not_loaded(cache_dir: Path) -> None:
    cache.store(KEY, b"payload")
    other = bytes(32)
    (entry,) = entries(cache_dir)
    entry.rename(entry.with_stem(other.hex()))
    assert cache.load(other) is None
    assert entries(cache_dir) == []


def test_keys_depend_on_program_options_and_environment(
    place: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(module: str = "m", options: bytes = b"o", extra: str = "") -> bytes:
        return cache.key(module, options, place.device, extra)

    assert key() == key()
    assert len(key()) == 32
    found = {key(), key("n"), key(options=b"p"), key(extra="1"), key("mo", b"")}
    assert len(found) == 5
    before = key()
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=nowhere")
    assert key() != before
    assert cache.key(b"m", b"", place.device) == cache.key("m", b"", place.device)


def test_options_are_part_of_the_key(place: Placement, cache_dir: Path) -> None:
    compile_text(programs.ADD, place)
    options = {"xla_backend_optimization_level": 0}
    assert not compile_text(programs.ADD, place, options=options).from_cache
    assert compile_text(programs.ADD, place, options=options).from_cache


def test_a_disabled_cache_stores_nothing(place: Placement, cache_dir: Path) -> None:
    with config.override(cache=False):
        compile_text(programs.ADD, place)
        assert not cache.info().enabled
    assert entries(cache_dir) == []


def test_least_recently_used_entries_are_evicted_first(cache_dir: Path) -> None:
    names = [bytes([i]) * 32 for i in range(10)]
    for age, name in enumerate(names):
        cache.store(name, bytes(1000))
        path = cache_dir / f"{name.hex()}.fxc"
        os.utime(path, (time.time() - 90000 + age,) * 2)
    assert cache.load(names[0]) is not None  # an old entry that is used again
    with config.override(cache_max_bytes=6000):
        cache.store(bytes([99]) * 32, bytes(1000))
    left = {path.stem for path in entries(cache_dir)}
    assert names[0].hex() in left
    assert names[1].hex() not in left
    assert (bytes([99]) * 32).hex() in left
    assert sum(p.stat().st_size for p in entries(cache_dir)) <= 6000


def test_an_entry_larger_than_the_bound_is_not_kept(cache_dir: Path) -> None:
    with config.override(cache_max_bytes=100):
        cache.store(KEY, bytes(1000))
    assert entries(cache_dir) == []


def test_temporary_files_of_dead_writers_are_removed(cache_dir: Path) -> None:
    cache.store(KEY, b"payload")
    old, new = (
        cache_dir / "write-1-0-0123abcd.tmp",
        cache_dir / "write-1-1-89ef4567.tmp",
    )
    foreign = [cache_dir / name for name in ("paper.tmp", "write-up.tmp", "notes.fxc")]
    for file in (old, new, *foreign):
        file.write_text("a line")
        if file is not new:
            os.utime(file, (time.time() - 7200,) * 2)
    assert cache.info().entries == 1
    assert not old.exists()
    assert new.exists()
    cache.clear()
    assert all(file.exists() for file in foreign)  # not written by the cache


def test_entries_that_are_not_files_are_ignored(
    place: Placement, cache_dir: Path
) -> None:
    compile_text(programs.ADD, place)
    (entry,) = entries(cache_dir)
    entry.unlink()
    entry.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compile_text(programs.ADD, place).from_cache
        compile_text(programs.identity("tensor<3xf32>"), place)
        assert compile_text(programs.identity("tensor<3xf32>"), place).from_cache
    assert cache.info().entries == 1
    cache.clear()
    assert entry.is_dir()
    entry.rmdir()
    os.mkfifo(entry)
    assert not compile_text(programs.ADD, place).from_cache  # does not wait for a line
    entry.unlink()
    elsewhere = cache_dir.parent / "elsewhere"
    elsewhere.write_bytes(b"")
    entry.symlink_to(elsewhere)
    assert not compile_text(programs.ADD, place).from_cache
    assert elsewhere.read_bytes() == b""


def test_a_directory_writable_to_others_is_not_used(
    place: Placement, cache_dir: Path
) -> None:
    cache.store(KEY, b"payload")
    cache_dir.chmod(0o777)
    with config.override(cache_dir=f"{cache_dir}/"):  # another process comes
        with pytest.warns(RuntimeWarning, match=r"writable to other users.*chmod go-w"):
            assert cache.load(KEY) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache.store(bytes(32), b"payload")
            assert not compile_text(programs.ADD, place).from_cache
        assert not cache.info().enabled
    assert len(entries(cache_dir)) == 1
    cache_dir.chmod(0o700)
    assert cache.load(KEY) == b"payload"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_writable_to_others_is_not_loaded(cache_dir: Path, mode: int) -> None:
    cache.store(KEY, b"payload")
    (entry,) = entries(cache_dir)
    entry.chmod(mode)
    assert cache.load(KEY) is None
    cache.store(KEY, b"payload")
    assert cache.load(KEY) == b"payload"


def test_a_directory_of_another_user_is_not_used(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(KEY, b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: cache_dir.stat().st_uid + 1)
    if not cache_dir.stat().st_uid:
        assert cache.load(KEY) == b"payload"  # root's
        return
    assert cache.load(KEY) is None
    with (
        config.override(cache_dir=f"{cache_dir}/"),
        pytest.warns(RuntimeWarning, match="belongs to another user"),
    ):
        cache.load(KEY)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_entries_and_folders_of_other_users_are_ignored(cache_dir: Path) -> None:
    cache.store(KEY, b"payload")
    (entry,) = entries(cache_dir)
    os.chown(entry, 12345, -1)
    assert cache.load(KEY) is None
    os.chown(cache_dir, 12345, -1)
    with (
        config.override(cache_dir=f"{cache_dir}/"),
        pytest.warns(RuntimeWarning, match="belongs to another user"),
    ):
        cache.load(KEY)


def test_clear(cache_dir: Path) -> None:
    cache.store(KEY, b"payload")
    assert cache.load(KEY) == b"payload"
    cache.clear()
    assert cache.info()[2:] == (0, 0, 0, 0)
    assert cache.load(KEY) is None


def test_a_directory_that_cannot_be_written_warns_once(
    place: Placement, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with config.override(cache_dir=str(blocked / "cache"), cache=True):
        with pytest.warns(RuntimeWarning, match="FXFLOW_CACHE_DIR"):
            program = compile_text(programs.ADD, place)
        assert run_add(program, place)[1] == 2.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile_text(programs.DONATE.replace("ATTRIBUTE", "{}"[:0]), place)
        assert not cache.info().enabled


def test_a_full_disk_leaves_nothing_behind(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        cache.store(KEY, b"payload")
    assert list(cache_dir.iterdir()) == []


def test_the_cache_directory_follows_configuration_and_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with config.override(cache_dir="~/mine"):
        assert cache.directory() == Path.home() / "mine"
    monkeypatch.setattr("sys.platform", "linux")
    with config.override(cache_dir=""):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache.directory() == tmp_path / "fxflow" / "compile"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache.directory() == Path.home() / ".cache" / "fxflow" / "compile"
        monkeypatch.setattr("sys.platform", "darwin")
        assert "Caches" in str(cache.directory())


def test_a_hit_is_fast(place: Placement, cache_dir: Path) -> None:
    compile_text(programs.ADD, place)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        assert compile_text(programs.ADD, place).from_cache
        times.append(time.perf_counter() - start)
    assert min(times) < 0.003
