"""`kernels.tune` and `kernels.tuned`."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.devices import cache
from fxflow.errors import ArgumentError, KernelError
from fxflow.kernels import tuning


def rows_of(f=None, **kernel):
    """Returns a kernel, and the lengths of blocks that its body was traced with."""
    seen = []

    @kernels.kernel("n:rows d -> n:rows d", out=lambda x: x, **kernel)
    def scaled(x, y, *, rows=kernels.tune(4, 16, 64)):
        seen.append(rows)
        y[...] = f(x[...], rows) if f else 2 * x[...]

    return scaled, seen


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """Keeps choices of other tests, on disk and in memory, out of a test."""
    before = dict(tuning._chosen)
    tuning._chosen.clear()
    with fxflow.config.override(cache_dir=str(tmp_path)):
        yield
    tuning._chosen.clear()
    tuning._chosen.update(before)


X = np.arange(300, dtype=np.float32).reshape(100, 3)


def fastest(monkeypatch, rows):
    """Makes one candidate the fastest, whatever the clock says."""
    monkeypatch.setattr(tuning, "_seconds", _Counted(rows))


class _Counted:
    """In place of `_seconds`: the runs are timed in turn, the chosen one is fast."""

    def __init__(self, fast):
        self.fast, self.calls, self.known = fast, 0, {}

    def __call__(self, run, args):
        """Returns the seconds of a run, by the order in which runs were first seen."""
        self.calls += 1
        index = self.known.setdefault(id(run), len(self.known))
        return 1.0 if (4, 16, 64)[index % 3] == self.fast else 2.0


def test_without_measuring_the_first_candidate_is_used():
    scaled, seen = rows_of()
    np.testing.assert_array_equal(scaled(X), 2 * X)
    assert seen == [4]


def test_a_value_that_is_passed_is_used():
    scaled, seen = rows_of()
    scaled(X, rows=7)
    assert seen == [7]


def test_what_was_measured_fastest_is_used_afterwards(monkeypatch):
    fastest(monkeypatch, 64)
    scaled, seen = rows_of()
    (found,) = kernels.tuned(scaled, X)
    assert found.kernel == "scaled"
    assert found.choice == {"rows": 64}
    assert len(found.seconds) == 3
    del seen[:]
    np.testing.assert_array_equal(scaled(X), 2 * X)
    assert seen[-1] == 64


def test_other_types_keep_the_first_candidate(monkeypatch):
    fastest(monkeypatch, 64)
    scaled, seen = rows_of()
    kernels.tuned(scaled, X)
    del seen[:]
    scaled(X[:50])
    assert seen == [4]


def test_functions_that_were_jitted_before_use_the_choice(monkeypatch):
    fastest(monkeypatch, 16)
    scaled, seen = rows_of()
    f = fxflow.jit(fxflow.grad(lambda x: fnp.sum(scaled(x) ** 2)))
    f(X)
    kernels.tuned(f, X)
    del seen[:]
    np.testing.assert_array_equal(f(X), 8 * X)
    assert seen[-1] == 16


def test_the_second_time_the_choice_comes_from_disk(monkeypatch):
    fastest(monkeypatch, 16)
    scaled, _ = rows_of()
    kernels.tuned(scaled, X)
    tuning._chosen.clear()

    def refused(*args):
        raise AssertionError("measured again")

    monkeypatch.setattr(tuning, "_measured", refused)
    (found,) = kernels.tuned(scaled, X)
    assert found == ("scaled", {"rows": 16}, ())


def test_a_damaged_entry_is_measured_again(monkeypatch, tmp_path):
    fastest(monkeypatch, 16)
    scaled, _ = rows_of()
    with fxflow.config.override(cache_dir=str(tmp_path)):
        kernels.tuned(scaled, X)
        (key,) = tuning._chosen
        cache.store(key, b'{"rows": 5}')
        (found,) = kernels.tuned(scaled, X)
    assert found.seconds


def test_the_option_measures_calls_on_arrays_and_never_within_a_trace(monkeypatch):
    fastest(monkeypatch, 64)
    scaled, seen = rows_of()
    with fxflow.config.override(kernel_tuning=True):
        fxflow.jit(scaled)(X)
        assert set(seen) == {4}
        np.testing.assert_array_equal(scaled(X), 2 * X)
        assert seen[-1] == 64


def test_a_candidate_with_other_results_is_an_error():
    scaled, _ = rows_of(lambda x, rows: x * (3 if rows == 16 else 2))
    with pytest.raises(KernelError, match=r"with rows=16, result 0 .* rows=4"):
        kernels.tuned(scaled, X)


def test_tuned_within_a_trace_is_an_error():
    scaled, _ = rows_of()
    with pytest.raises(ArgumentError, match="while a function is traced"):
        fxflow.jit(lambda x: kernels.tuned(scaled, x))(X)


def test_a_function_without_candidates_is_an_error():
    with pytest.raises(ArgumentError, match="calls no kernel that has candidates"):
        kernels.tuned(fnp.sin, X)


@pytest.mark.parametrize("given", [(), range(13), ((1, 2),)])
def test_wrong_candidates_are_errors(given):
    with pytest.raises(ArgumentError, match=r"kernels\.tune"):
        kernels.tune(*given)


def test_too_many_combinations_are_an_error():
    @kernels.kernel("n:rows -> n:rows", out=lambda x: x)
    def f(x, y, *, rows=kernels.tune(1, 2, 3, 4), by=kernels.tune(1, 2, 3, 4)):
        y[...] = x[...]

    with pytest.raises(ArgumentError, match="16 combinations of candidates"):
        kernels.tuned(f, X[:, 0])


def test_a_choice_of_two_arguments_is_one_of_their_combinations():
    @kernels.kernel("n:rows -> n:rows", out=lambda x: x)
    def f(x, y, *, rows=kernels.tune(8, 32), order=kernels.tune("a", "b")):
        y[...] = x[...] + 1

    (found,) = kernels.tuned(f, X[:, 0])
    assert found.choice["rows"] in (8, 32)
    assert found.choice["order"] in ("a", "b")
    assert len(found.seconds) == 4


@pytest.mark.slow
@pytest.mark.processes
def test_the_environment_variable_uses_what_is_on_disk(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy as np, fxflow\n"
        "from fxflow import kernels\n"
        "seen = []\n"
        "@kernels.kernel('n:rows -> n:rows', out=lambda x: x)\n"
        "def f(x, y, *, rows=kernels.tune(4, 16)):\n"
        "    seen.append(rows)\n"
        "    y[...] = x[...] + 1\n"
        "x = np.ones(64, 'float32')\n"
        "if sys.argv[1] == 'measure':\n"
        "    print(kernels.tuned(f, x)[0].choice['rows'])\n"
        "else:\n"
        "    fxflow.jit(f)(x)\n"
        "    print(seen[-1])\n"
    )

    def run(what, **environment):
        given = {**os.environ, "FXFLOW_CACHE_DIR": str(tmp_path), **environment}
        done = subprocess.run(
            [sys.executable, str(program), what],
            capture_output=True,
            text=True,
            env=given,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split()[-1])

    chosen = run("measure")
    assert run("use", FXFLOW_KERNEL_TUNING="1") == chosen
    assert run("use") == 4
