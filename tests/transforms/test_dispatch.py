"""The short path of compiled calls: what is known is found, and nothing else."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit
from fxflow.errors import RetraceWarning
from fxflow.transforms import dispatch
from tests.transforms.test_jit import counting


def test_traces_once_for_each_signature():
    fun = counting(lambda x, y: x + y)
    jitted = jit(fun)
    one, two = fnp.array(1.0, fnp.float32), fnp.array(2.0, fnp.float32)
    for _ in range(3):
        assert float(jitted(one, two)) == 3.0
    assert fun.traces == 1
    jitted(fnp.ones(2), fnp.ones(2))
    assert fun.traces == 2
    jitted(1.0, 2.0)  # weak types are other types
    assert fun.traces == 3
    jitted(1.0, 5.0)
    jitted(one, y=two)
    assert fun.traces == 4


def test_jits_of_one_function_share_their_programs():
    fun = counting(lambda x: x * 2)
    for _ in range(3):
        jit(fun)(fnp.ones(3))
    assert fun.traces == 1


def test_a_jitted_function_does_not_outlive_its_last_reference():
    def make():
        def local(x):
            return x + 1

        jit(local)(1.0)
        return weakref.ref(local)

    reference = make()
    gc.collect()
    assert reference() is None


def test_calls_of_every_form_share_one_function():
    """Structures that differ only in how arguments were passed stay apart."""
    f = fxflow.jit(lambda *args, **kwargs: (args, kwargs))
    x = fnp.arange(3.0)
    calls = [
        ((x,), {}),
        (([x],), {}),
        (((x,),), {}),
        (((x,), {"k": x}), {}),
        ((x,), {"k": x}),
        ((), {"k": x}),
        ((), {}),
        ((x, 2.0), {}),
        ((x, np.float32(2)), {"k": np.ones(3, np.float32)}),
    ]
    for _ in range(3):
        for args, kwargs in calls:
            got = f(*args, **kwargs)
            want = (args, kwargs)
            assert fxflow.tree.structure(got) == fxflow.tree.structure(want)
            pairs = zip(fxflow.tree.leaves(got), fxflow.tree.leaves(want), strict=True)
            assert all(np.array_equal(a, b) for a, b in pairs)


def test_numbers_and_numpy_arrays_do_not_trace_again():
    traced = []

    @fxflow.jit
    def f(x, y):
        traced.append(y)
        return x + y

    x = fnp.arange(3.0)
    for i in range(4):
        assert f(x, i).tolist() == [i, i + 1, i + 2]
    for i in range(4):
        assert f(x, np.full(3, i, np.float32)).tolist() == [i, i + 1, i + 2]
    assert len(traced) == 2


def test_a_python_error_is_raised_by_every_call():
    def refuse(x):
        raise KeyError("no such thing")

    f = fxflow.jit(lambda x: fxflow.pure_callback(refuse, x, x))
    for _ in range(3):
        with pytest.raises(KeyError, match="no such thing"):
            f(fnp.arange(3.0))


def test_static_values_that_are_equal_but_of_other_types():
    jitted = jit(lambda x, n: x + (1 if n is True else 2), static_argnums=1)
    assert float(jitted(0.0, True)) == 1.0
    assert float(jitted(0.0, 1)) == 2.0


def test_several_threads_at_once():
    jitted = jit(lambda x: fnp.sin(x) * 2)
    slope = jit(grad(lambda x: fnp.sum(fnp.sin(x))))
    failures = []

    def work(n):
        try:
            for size in range(1, 5):
                x = np.linspace(0, n, size, dtype=np.float32)
                np.testing.assert_allclose(jitted(x), 2 * np.sin(x), rtol=1e-5)
                np.testing.assert_allclose(slope(x), np.cos(x), rtol=1e-5, atol=1e-6)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


CAPTURING = {
    "jit": lambda big: jit(lambda x: x + big),
    "jit of grad": lambda big: jit(grad(lambda x: fnp.sum(x * big))),
    "grad of jit": lambda big: grad(jit(lambda x: fnp.sum(x * big))),
    "pmap": lambda big: fxflow.pmap(lambda x: x + big),
    "shard_map": lambda big: fxflow.shard_map(
        lambda x: x + big,
        mesh=fxflow.make_mesh((1,), ("x",)),
        in_specs=fxflow.P(),
        out_specs=fxflow.P(),
    ),
}


@pytest.mark.parametrize("name", CAPTURING)
def test_what_was_captured_goes_with_the_function(name):
    big = fnp.arange(1000.0)
    gone = weakref.ref(big)
    f = CAPTURING[name](big)
    gc.collect()
    gc.disable()
    try:
        f(np.ones(1, np.float32) if name == "pmap" else 1.0)
        del f, big
        assert gone() is None
    finally:
        gc.enable()


def test_programs_of_ever_new_shapes_are_bounded(monkeypatch):
    monkeypatch.setattr(dispatch, "MAX_TRACED", 8)
    fun = counting(lambda x: x * 2)
    jitted = jit(fun)
    programs = weakref.WeakSet()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for size in range(1, 41):
            assert float(jitted(fnp.ones(size)).sum()) == 2.0 * size
            programs.add(next(reversed(jitted._caches.fast.values()))[0])
        assert fun.traces == jitted._caches.traces == 40
        assert len(jitted._caches.traced) <= 8 and len(jitted._caches.fast) <= 8
        gc.collect()
        assert len(programs) <= 9
        jitted(fnp.ones(40))
        assert fun.traces == 40
        jitted(fnp.ones(1))  # forgotten
        assert fun.traces == 41


def test_programs_of_a_function_are_bounded_by_their_bytes(monkeypatch):
    monkeypatch.setattr(dispatch, "PROGRAM_BYTES", 2_000_000)
    monkeypatch.setattr(dispatch, "LEAST", 3)
    jitted = jit(counting(lambda x: x * 2))
    programs = weakref.WeakSet()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for size in range(1, 30):
            jitted(fnp.ones(size))
            programs.add(next(reversed(jitted._caches.fast.values()))[0])
    gc.collect()
    assert len(programs) <= 10
    assert 3 <= len(jitted._caches.compiled) <= 10
