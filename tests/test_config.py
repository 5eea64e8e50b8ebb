"""Options: reading, setting, overriding, the environment, errors."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import _config, jit
from fxflow._config import Option, config

OPTIONS = sorted(_config._OPTIONS)


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    before = {name: getattr(config, name) for name in OPTIONS}
    yield
    for name, value in before.items():
        config.update(name, value)


def fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_")}
    env["PYTHONPATH"] = str(Path(__file__).parent.parent)
    code = "from fxflow._config import config\n" + code
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**env, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_there_are_few_options_and_each_is_described() -> None:
    assert len(OPTIONS) <= 25
    for option in _config._OPTIONS.values():
        assert option.doc.endswith("."), option.name
        assert option.environment == f"FXFLOW_{option.name.upper()}"
        assert option.check(option.default, "default") == option.default


def test_assignment_holds_in_all_threads() -> None:
    seen = []
    ready, go = threading.Event(), threading.Event()

    def look() -> None:
        seen.append(config.x64)
        ready.set()
        go.wait(10)
        seen.append(config.x64)

    thread = threading.Thread(target=look)
    thread.start()
    assert ready.wait(10)
    config.x64 = True
    go.set()
    thread.join()
    assert seen == [False, True]


def test_override_is_of_one_thread_and_ends() -> None:
    seen = []
    with config.override(x64=True, eager="xla") as same:
        assert same is config
        assert (config.x64, config.eager) == (True, "xla")
        thread = threading.Thread(target=lambda: seen.append(config.x64))
        thread.start()
        thread.join()
    assert seen == [False]
    assert (config.x64, config.eager) == (False, "auto")


def test_overrides_nest_and_end_after_an_error() -> None:
    outer = config.override(cache_max_bytes=1)
    with pytest.raises(KeyError), outer:
        with config.override(cache_max_bytes=2):
            assert config.cache_max_bytes == 2
        assert config.cache_max_bytes == 1
        raise KeyError
    assert config.cache_max_bytes == 2 << 30
    with outer:  # may be entered again
        assert config.cache_max_bytes == 1


def test_assignment_inside_an_override_waits_for_its_end() -> None:
    with config.override(eager="xla"):
        config.eager = "auto"
        assert config.eager == "xla"
    assert config.eager == "auto"


def test_overrides_are_of_one_task() -> None:
    seen = []

    async def one(inside, outside, manager=None):
        with manager or config.override(x64=True, eager="xla"):
            inside.set()
            await outside.wait()
            seen.append(("one", config.x64, config.eager, fnp.ones(1).dtype.name))
            child = asyncio.create_task(other("child"))
            await child
        seen.append(("left", config.x64, config.eager, fnp.ones(1).dtype.name))

    async def other(name):
        seen.append((name, config.x64, config.eager, fnp.ones(1).dtype.name))
        with config.override(x64=False):
            await asyncio.sleep(0)
            seen.append((name, config.x64, config.eager, fnp.ones(1).dtype.name))

    async def main(manager=None):
        inside, outside = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(one(inside, outside, manager))
        await inside.wait()
        await other("other")
        outside.set()
        await task

    shared = config.override(x64=True, eager="xla")
    for manager in (None, shared):
        seen.clear()
        asyncio.run(main(manager))
        assert seen == [
            ("other", False, "auto", "float32"),
            ("other", False, "auto", "float32"),
            ("one", True, "xla", "float64"),
            ("child", True, "xla", "float64"),
            ("child", False, "xla", "float32"),
            ("left", False, "auto", "float32"),
        ]
        assert not config.overridden()

    async def twice():
        release = [asyncio.Event(), asyncio.Event()]

        async def hold(i):
            with shared:
                await release[i].wait()
                seen.append((i, config.x64))
            seen.append((i, config.x64))

        tasks = [asyncio.create_task(hold(i)) for i in range(2)]
        await asyncio.sleep(0)
        seen.clear()
        for i in range(2):
            release[i].set()
            await tasks[i]
        return seen

    assert asyncio.run(twice()) == [(0, True), (0, False), (1, True), (1, False)]
    assert not config.overridden()


def test_what_was_started_within_an_override_has_it_no_longer() -> None:
    async def late():
        await asyncio.sleep(0)
        return config.x64

    async def main():
        with config.override(x64=True):
            task = asyncio.create_task(late())
        return await task

    assert asyncio.run(main()) is False


def test_programs_of_two_tasks() -> None:
    compiled = jit(lambda x: fnp.asarray(np.arange(2.0)) + x)
    given = np.float64(1.0)

    async def run(wide, turns):
        with config.override(x64=wide):
            found = []
            for _ in range(turns):
                out = (compiled(given), fnp.sin(given), fnp.asarray(given) + 1)
                found.append({x.dtype.name for x in out})
                await asyncio.sleep(0)
        return found

    async def main():
        return await asyncio.gather(run(True, 3), run(False, 4), run(True, 5))

    assert asyncio.run(main()) == [
        [{"float64"}] * 3,
        [{"float32"}] * 4,
        [{"float64"}] * 5,
    ]


def test_a_wrong_value_overrides_nothing() -> None:
    with pytest.raises(ValueError, match="eager"):
        config.override(x64=True, eager="numpy")
    assert config.x64 is False


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x64", "perhaps", "expected a boolean"),
        ("x64", 2, "expected a boolean"),
        ("eager", "jit", "expected one of 'auto', 'xla'; got 'jit'"),
        ("num_cpu_devices", -1, "not negative"),
        ("num_cpu_devices", True, "expected an integer"),
        ("num_cpu_devices", "two", "expected an integer"),
        ("collective_timeout", 0, "positive"),
        ("collective_timeout", "soon", "number of seconds"),
        ("collective_timeout", float("nan"), "finite"),
        ("default_matmul_precision", "low", "expected one of"),
        ("platforms", 3, "expected a string"),
        ("cache_max_bytes", "much", "number of bytes"),
    ],
)
def test_invalid_values_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"config.{name}: .*{message}"):
        config.update(name, value)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("x64", 1, True),
        ("x64", "Yes", True),
        ("x64", "off", False),
        ("cache_max_bytes", "2G", 2 << 30),
        ("cache_max_bytes", "1.5 MiB", 3 << 19),
        ("cache_max_bytes", "100", 100),
        ("cache_dir", Path("a") / "b", os.path.join("a", "b")),
        ("collective_timeout", "2.5", 2.5),
        ("default_matmul_precision", "", None),
        ("default_matmul_precision", "highest", "highest"),
    ],
)
def test_values_are_normalised(name: str, given: object, kept: object) -> None:
    config.update(name, given)
    assert getattr(config, name) == kept


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match=r"no option 'x46'; did you mean x64\?"):
        config.x46 = True
    with pytest.raises(AttributeError, match="the options are"):
        config.update("zzzzzz", 1)
    with pytest.raises(AttributeError, match="did you mean cache_dir"):
        config.override(cachedir="x")
    with pytest.raises(AttributeError, match="x46"):
        config.x46
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del config.x64


def test_listeners_hear_changes_until_cancelled() -> None:
    heard: list[object] = []
    cancel = config.on_change("x64", heard.append)
    config.x64 = True
    with config.override(x64=False, eager="xla"):
        pass
    cancel()
    cancel()
    config.x64 = False
    assert heard == [True, False, True]
    with pytest.raises(AttributeError):
        config.on_change("nothing", heard.append)


def test_reset() -> None:
    config.x64, config.eager = True, "xla"
    config.reset("x64")
    assert (config.x64, config.eager) == (False, "xla")
    config.reset()
    assert config.eager == "auto"


def test_describe_and_repr() -> None:
    config.x64, config.cache_dir = True, ""
    lines = config.describe().splitlines()
    assert len(lines) == 1 + len(OPTIONS)
    (line,) = [line for line in lines if line.startswith("x64 ")]
    assert "True *" in line
    assert "FXFLOW_X64" in line
    assert repr(config) == f"Config(x64=True, num_cpu_devices={config.num_cpu_devices})"
    assert set(OPTIONS) <= set(dir(config))
    assert isinstance(type(config).x64, Option)


def test_environment() -> None:
    done = fresh(
        "print(config.x64, config.num_cpu_devices, config.cache_max_bytes)",
        FXFLOW_X64="1",
        FXFLOW_NUM_CPU_DEVICES="4",
        FXFLOW_CACHE_MAX_BYTES="1M",
    )
    assert done.stdout.split() == ["True", "4", "1048576"], done.stderr


def test_a_wrong_environment_is_named() -> None:
    done = fresh("", FXFLOW_EAGER="slow")
    assert "environment variable FXFLOW_EAGER: expected one of" in done.stderr


def test_threads_that_end_are_forgotten() -> None:
    def read() -> None:
        assert config.x64 is False

    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    import gc

    gc.collect()
    assert len(_config._threads) < 15


def test_misspelt_environment_variables_warn():
    for wrong, right in [("CHACHE", "CACHE"), ("NUM_CPU_DEVICE", "NUM_CPU_DEVICES")]:
        with pytest.warns(UserWarning, match=f"FXFLOW_{wrong}: did you .*_{right}\\?"):
            _config._warn_of_misspelt({f"FXFLOW_{wrong}": "0"})


def test_other_environment_variables_do_not_warn():
    root = Path(fxflow.__file__).parent
    named = {
        name
        for path in root.rglob("*.py")
        for name in re.findall(r"FXFLOW_[A-Z0-9_]*[A-Z0-9]\b", path.read_text("utf-8"))
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _config._warn_of_misspelt(dict.fromkeys({*named, "FXFLOW_MINE", "PATH"}, ""))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("jax_enable_x64", "x64"),
        ("jax_debug_nans", "debug_nans"),
        ("enable_x64", "x64"),
    ],
)
def test_options_of_jax_lead_to_ours(name, own):
    with pytest.raises(AttributeError, match=f"'{name}'; here it is {own}$"):
        config.update(name, True)


def test_jax_names_stand_for_options():
    assert set(_config._CALLED_HERE.values()) <= set(_config._OPTIONS)


def test_an_override_decorates_functions():
    @config.override(numpy_rank_promotion="raise")
    def function(depth):
        found = [config.numpy_rank_promotion]
        return found + (function(depth - 1) if depth else [])

    assert function(2) == ["raise"] * 3
    assert config.numpy_rank_promotion == "allow"
    assert fxflow.disable_jit()(lambda: config.disable_jit)() is True
    threads = [threading.Thread(target=function, args=(20,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not config.overridden() and config.numpy_rank_promotion == "allow"
