"""jit: caching, static and donated arguments, errors, retraces."""

import copy
import dataclasses
import functools
import gc
import pickle
import sys
import threading
import traceback
import warnings
import weakref

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, vmap
from fxflow.core import caches
from fxflow.core.runtime.execute import LoweredProgram
from fxflow.errors import DonationError, RetraceWarning
from fxflow.transforms import jit as jit_module


def counting(fun):
    @functools.wraps(fun)
    def counted(*args, **kwargs):
        counted.traces += 1
        return fun(*args, **kwargs)

    counted.traces = 0
    return counted


def test_pytrees_in_and_out():
    jitted = jit(lambda d, *rest, k=None: {"s": d["a"] + rest[0], "n": None, "t": (k,)})
    out = jitted({"a": fnp.ones(2)}, fnp.ones(2), k=np.float32(3))
    assert out["s"].tolist() == [2.0, 2.0]
    assert out["n"] is None
    assert float(out["t"][0]) == 3.0


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}])
def test_static_arguments(options):
    fun = counting(lambda x, n: [x * i for i in range(n)])
    jitted = jit(fun, **options)
    assert len(jitted(1.0, 3)) == 3
    assert len(jitted(1.0, n=3)) == 3
    assert len(jitted(1.0, 2)) == 2
    assert len(jitted(1.0, 3)) == 3
    assert fun.traces <= 3


def test_decorator_forms_and_methods():
    @jit
    def a(x):
        return x + 1

    @jit(static_argnames=("n",))
    def b(x, n):
        return x * n

    class Model:
        scale = 3.0

        @functools.partial(jit, static_argnums=0)
        def __call__(self, x):
            return x * self.scale

    assert float(a(1.0)) == 2.0
    assert float(b(2.0, n=4)) == 8.0
    assert float(Model()(2.0)) == 6.0
    assert a.__name__ == "a"


def test_donated_arguments_are_reused_and_deleted():
    jitted = jit(lambda s, x: {"w": s["w"] + x}, donate_argnums=0)
    state = jitted({"w": fnp.ones(1000)}, 1.0)
    pointer = state["w"].unsafe_buffer_pointer()
    new = jitted(state, 1.0)
    assert new["w"].unsafe_buffer_pointer() == pointer
    assert state["w"].is_deleted()
    with pytest.raises(RuntimeError, match=r"f32\[1000\] was deleted.*donate"):
        state["w"] + 1
    new = jitted(new, 1.0)
    assert float(new["w"][0]) == 4.0


def test_donation_never_changes_what_numpy_sees():
    jitted = jit(lambda x: x + 1, donate_argnums=0)
    x = jit(lambda: fnp.zeros(1000))()
    view = np.asarray(x)
    y = jitted(x)
    assert (view == 0).all() and (np.asarray(y) == 1).all()
    host = np.zeros(1000, np.float32)
    z = jitted(fnp.asarray(host))
    assert (host == 0).all() and (np.asarray(z) == 1).all()


def test_donation_never_changes_what_dlpack_sees():
    jitted = jit(lambda x: x + 1, donate_argnums=0)
    x = jit(lambda: fnp.zeros(1000))()
    view = np.from_dlpack(x)
    y = jitted(x)
    assert (view == 0).all() and (np.asarray(y) == 1).all()
    assert x.is_deleted()
    # The other way: memory that NumPy owns and lends.
    raw = np.zeros(1016, np.float32)
    start = (-raw.ctypes.data % 64) // 4
    lent = raw[start : start + 1000]
    z = jitted(fnp.from_dlpack(lent))
    assert (raw == 0).all() and (np.asarray(z) == 1).all()


def test_donation_by_name_and_errors():
    jitted = jit(lambda a, b: a + b, donate_argnames="b")
    a, b = jit(lambda: (fnp.ones(3), fnp.ones(3)))()
    jitted(a, b=b)
    assert b.is_deleted() and not a.is_deleted()
    with pytest.raises(DonationError, match=r"argument b f32\[\]~ cannot be reused"):
        jit(lambda a, b: a, donate_argnums=1)(fnp.ones(3), fnp.array(1.0))


@pytest.mark.parametrize("known", [False, True], ids=["first call", "known call"])
def test_memory_donated_twice_is_refused_before_the_call(known, capfd):
    a = fnp.ones(3) * 2
    one = jit(lambda a, b: (a + 1, b + 1), donate_argnums=0)
    both = jit(lambda d, c: (d["x"] + 1, d["y"] + 2, c * 3), donate_argnums=(0, 1))
    if known:
        one(fnp.ones(3), fnp.ones(3))
        both({"x": fnp.ones(3), "y": fnp.ones(3)}, fnp.ones(3))
    with pytest.raises(DonationError, match="a and b are the same array, and a is don"):
        one(a, a)
    with pytest.raises(DonationError, match=r"d\['x'\] and c are .* both are donated"):
        both({"x": a, "y": fnp.ones(3)}, a)
    with pytest.raises(DonationError, match=r"d\['x'\] and d\['y'\] are the same"):
        both({"x": a, "y": a}, fnp.ones(3))
    assert a.tolist() == [2, 2, 2], "nothing was taken"
    assert "donate" not in capfd.readouterr().err


def test_captured_arrays_are_constants_of_the_program():
    table = fnp.arange(100.0)
    jitted = jit(lambda i: table[i] * 2)
    assert float(jitted(3)) == 6.0
    assert float(jitted(4)) == 8.0


def test_arguments_that_are_not_used_and_results_that_are_arguments():
    out = jit(lambda x, y: (x, x, 3.0))(fnp.ones(2), fnp.ones(1000))
    assert out[0].tolist() == [1.0, 1.0] and float(out[2]) == 3.0
    kept = jit(lambda x, y: x, keep_unused=True).lower(1.0, 2.0).as_text()
    dropped = jit(lambda x, y: x).lower(1.0, 2.0).as_text()
    assert "%a1" in kept and "%a1" not in dropped


def test_inline_leaves_no_call():
    inner = lambda x: fnp.sin(x) + 1
    with_call = fxflow.make_graph(lambda x: jit(inner)(x))(1.0)
    without = fxflow.make_graph(lambda x: jit(inner, inline=True)(x))(1.0)
    assert [n.primitive.name for n in with_call.nodes] == ["jit"]
    assert "sin" in [n.primitive.name for n in without.nodes]


def test_shared_function_is_lowered_once():
    inner = jit(lambda x: fnp.sin(x))
    text = jit(lambda x: inner(inner(inner(x)))).lower(1.0).as_text()
    assert text.count("stablehlo.sine") == 1 and text.count("call @") == 3


def test_composition_in_any_order():
    def fun(x):
        return fnp.sum(fnp.tanh(x) ** 2)

    x = fnp.linspace(0.0, 1.0, 4)
    expected = np.asarray(grad(fun)(x))
    rows = fnp.stack([x, x + 1])
    for composed in (jit(grad(fun)), grad(jit(fun)), jit(grad(jit(fun)))):
        np.testing.assert_allclose(composed(x), expected, rtol=1e-6)
    for composed in (
        jit(vmap(grad(fun))),
        vmap(jit(grad(fun))),
        vmap(grad(jit(fun))),
        jit(vmap(jit(grad(jit(fun))))),
    ):
        np.testing.assert_allclose(composed(rows)[0], expected, rtol=1e-6)


def test_x64_is_part_of_the_signature():
    jitted = jit(lambda: fnp.zeros(3))
    assert jitted().dtype == np.float32
    with fxflow.config.override(x64=True):
        assert jitted().dtype == np.float64
    assert jitted().dtype == np.float32


def test_host_memory_written_to_later():
    host = np.zeros(4, np.float32)
    x = fnp.asarray(host)
    y = jit(lambda v: v + 1)(host)
    host[:] = 7
    assert x.tolist() == [0.0] * 4 and y.tolist() == [1.0] * 4


def test_retraces_are_explained():
    def step(x, n):
        return x * n

    jitted = jit(step, static_argnames="n")
    jitted(fnp.ones(2), n=1)
    with (
        fxflow.config.override(explain_retraces=True),
        pytest.warns(
            RetraceWarning, match=r"argument x changed from f32\[2\] to f32\[3\]"
        ),
    ):
        jitted(fnp.ones(3), n=1)
    with (
        fxflow.config.override(explain_retraces=True),
        pytest.warns(RetraceWarning, match="static argument n changed from 1 to 5"),
    ):
        jitted(fnp.ones(3), n=5)


def test_the_tenth_trace_warns_by_itself():
    jitted = jit(lambda x: x + 1)
    for n in range(1, 10):
        jitted(fnp.ones(n))
    with pytest.warns(RetraceWarning, match="traced for the 10th time"):
        jitted(fnp.ones(10))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jit(3), TypeError, "takes a function"),
        (lambda: jit(lambda x: x)("a"), TypeError, "argument x.*not an array.*static"),
        (lambda: jit(lambda x: x)({"k": object()}), TypeError, r"x\['k'\]"),
        (lambda: jit(lambda x: "a")(1.0), TypeError, "returned 'a'"),
        (lambda: jit(lambda x: {"k": "a"})(1.0), TypeError, r"\['k'\]"),
        (
            lambda: jit(lambda x: x, static_argnames="y"),
            TypeError,
            "'y' is not a parameter",
        ),
        (lambda: jit(lambda x: x, static_argnums=3), TypeError, "out of range"),
        (
            lambda: jit(lambda x: x, static_argnums=0, donate_argnums=0),
            TypeError,
            "both static and donated",
        ),
        (
            lambda: jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
            ValueError,
            "static argument n of type list cannot be hashed: pass a tuple",
        ),
        (
            lambda: jit(lambda x: x if x > 0 else -x)(1.0),
            TypeError,
            r"bool\[\].*(lax.cond|fnp.where)",
        ),
        (lambda: jit(lambda x: float(x))(1.0), TypeError, "argument x of"),
        (lambda: jit(lambda x: np.sin(x))(1.0), TypeError, "fxflow.numpy functions"),
        (lambda: jit(lambda n: fnp.zeros(n))(3), TypeError, "static"),
        (lambda: jit(lambda n: list(range(n)))(3), TypeError, "Python integer"),
    ],
)
def test_invalid_functions_arguments_and_options_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_leaked_values_are_named():
    kept = []

    @jit
    def leaky(x):
        kept.append(x * 2)
        return x

    leaky(1.0)
    with pytest.raises(RuntimeError, match="outside the transformed function"):
        kept[0] + 1
    kept.clear()
    with (
        fxflow.checking_leaks(),
        pytest.raises(RuntimeError, match="outside the transformed function"),
    ):
        leaky(fnp.ones(7))


def test_errors_come_without_own_frames():
    def inner(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as info:
        jit(grad(inner))(1.0)
    own = [e for e in info.traceback if "fxflow/core" in str(e.path)]
    assert not own


def test_float0_comes_in_and_goes_out():
    none = np.zeros((3,), fxflow.float0)

    def is_none(x, shape=(3,)):
        return x.dtype == fxflow.float0 == np.asarray(x).dtype and x.shape == shape

    assert is_none(jit(lambda z: z)(none))
    assert is_none(jit(lambda z: z)(jit(lambda z: z)(none)))
    assert is_none(jit(lambda: none)())
    assert is_none(jit(lambda z: z, donate_argnums=0)(jit(lambda z: z)(none)))
    assert is_none(fxflow.pmap(lambda z: z)(none[None]), (1, 3))
    assert is_none(fxflow.vmap(jit(lambda z: z), out_axes=1)(none[None]), (3, 1))
    assert is_none(lax.scan(lambda c, _: (c, None), none, length=2)[0])
    assert is_none(jit(lambda p: lax.cond(p, lambda z: z, lambda _: none, none))(True))
    turned = fxflow.vmap(lambda p: lax.cond(p, lambda z: z, lambda _: none, none))
    assert is_none(turned(fnp.array([True, False])), (2, 3))
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert is_none(copied(jit(lambda z: z)(none)))
    by = jit(fxflow.grad(lambda x, i: (x * 2.0).sum(), (0, 1), allow_int=True))
    for _ in range(2):
        first, second = by(fnp.ones(3), fnp.arange(3))
        assert first.tolist() == [2.0, 2.0, 2.0] and is_none(second)
    back = fxflow.vjp(lambda x, y: x + y, np.arange(3), 1)[1]
    assert is_none(jit(back)(none)[0])
    with pytest.raises(TypeError, match="float0, the derivative with respect to an"):
        jit(lambda z: z + 1.0)(none)


@pytest.mark.parametrize(
    "value, advice",
    [
        ({"a": 1}, r"tuple\(d.items\(\)\)"),
        ({1}, "frozenset"),
        (fnp.ones(2), "ordinary"),
    ],
)
def test_advice_for_static_arguments_fits(value, advice):
    with pytest.raises(ValueError, match=f"cannot be hashed: .*{advice}"):
        jit(lambda x, c: x, static_argnums=1)(1.0, value)


def test_a_length_that_is_traced_names_its_argument():
    with pytest.raises(TypeError, match=r"^arange: stop must be.* argument n of"):
        jit(lambda n: fnp.arange(n))(3)
    with pytest.raises(TypeError, match=r"^arange: start must be known"):
        jit(lambda n: fnp.arange(n, 3))(0)


@pytest.mark.parametrize("transform", [jit, fxflow.grad, fxflow.linearize])
def test_pythons_errors_name_no_class_of_ours(transform):
    def mistaken(x):
        return x.unheard_of

    with pytest.raises(AttributeError, match=r"^'TracedArray' object has no attribute"):
        transform(mistaken, *([1.0] if transform is fxflow.linearize else []))(1.0)


# -- threads, pickles, copies ----------------------------------------------------------


@jit
def module_level(x):
    return x + 1.0


def plain(x, power):
    return x**power


@fxflow.custom_jvp
def module_level_rule(x):
    return x * 2.0


module_level_rule.defjvp(lambda p, t: (module_level_rule(*p), 2.0 * t[0]))


def test_used_functions_are_pickled_and_copied():
    made = jit(plain, static_argnums=1)
    mapped = fxflow.pmap(plain, static_broadcasted_argnums=1)
    for _ in range(2):
        made(fnp.ones(3), 2), module_level(2.0), mapped(fnp.ones((1, 2)), 2)
        for again in (
            pickle.loads(pickle.dumps(module_level)),
            copy.copy(module_level),
        ):
            assert again is module_level
        assert copy.deepcopy([module_level])[0] is module_level
        loaded = pickle.loads(pickle.dumps(made))
        assert repr(loaded) == "<jit of plain>" and loaded is not made
        assert loaded(fnp.full(2, 3.0), 2).tolist() == [9.0, 9.0]
        assert copy.deepcopy(made)(fnp.full(2, 3.0), 2).tolist() == [9.0, 9.0]
        loaded = pickle.loads(pickle.dumps(mapped))
        assert loaded(fnp.full((1, 2), 3.0), 2).tolist() == [[9.0, 9.0]]
        jit(module_level_rule)(1.0)
        assert pickle.loads(pickle.dumps(module_level_rule)) is module_level_rule
    small = len(pickle.dumps(made))
    made(fnp.ones(1000), 3)
    assert len(pickle.dumps(made)) == small, "nothing that was compiled"
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(jit(lambda x: x))


def race(count, function):
    together = threading.Barrier(count)
    found = []

    def run():
        together.wait()
        found.append(function())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        frame = sys._current_frames().get(thread.ident)
        assert not thread.is_alive(), "".join(traceback.format_stack(frame))
    return found


def test_racing_first_calls_trace_and_compile_once(monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 60.0)
    compiled = []
    compile = LoweredProgram.compile
    monkeypatch.setattr(
        LoweredProgram, "compile", lambda *given: compiled.append(1) or compile(*given)
    )
    f = counting(lambda x: fnp.sin(x) + 1.0)
    jitted = jit(f)
    found = race(16, lambda: float(jitted(0.0)))
    assert found == [1.0] * 16
    assert f.traces == len(compiled) == 1


def test_a_traced_function_may_run_threads_that_call_it(monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 0.01)
    first = []

    def fun(x):
        if not first:
            first.append(1)
            assert race(2, lambda: float(jitted(1.0))) == [2.0, 2.0]
        return x + 1.0

    jitted = jit(fun)
    assert float(jitted(1.0)) == 2.0


def test_racing_calls_that_fail():
    def fail(x):
        raise KeyError("no")

    def attempt():
        try:
            jit(fail)(1.0)
        except KeyError:
            return "failed"

    assert race(4, attempt) == ["failed"] * 4


@pytest.mark.parametrize("name", ["in_shardings", "out_shardings"])
def test_invalid_shardings_are_refused(name):
    with pytest.raises(TypeError, match="in_shardings and out_shardings are Shardings"):
        jit(lambda x: x, **{name: np.zeros(2)})


@dataclasses.dataclass(frozen=True)
class Options:
    scale: float
    note: str = dataclasses.field(default="", compare=False)


class Same:
    """Equal to each other, by its own word."""

    def __eq__(self, other):
        return isinstance(other, Same)

    def __hash__(self):
        return 0


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (0.0, -0.0, False),
        (1, True, False),
        ((1, 2), (1.0, 2), False),
        ((0.0,), (-0.0,), False),
        (((1,), 2), ((True,), 2), False),
        (frozenset({1}), frozenset({1.0}), False),
        (Options(1), Options(1.0), False),
        (Options(0.0), Options(-0.0), False),
        ((Options(1),), (Options(True),), False),
        (np.float32(0.0), np.float32(-0.0), False),
        (0j, -0j, False),
        ((1, "a", None), (1, "a", None), True),
        (Options(1.0, "x"), Options(1.0, "y"), True),
        (Same(), Same(), True),
    ],
)
@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}])
def test_static_arguments_that_are_equal_but_not_the_same(one, other, shared, options):
    seen = []

    def f(x, n):
        seen.append(n)
        return x

    jitted = jit(f, **options)
    for value in (one, other, one, other):
        if "static_argnums" in options:
            jitted(1.0, value)
        else:
            jitted(1.0, n=value)
    assert len(seen) == (1 if shared else 2)


# -- the short path, and what is kept --------------------------------------------------


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
    monkeypatch.setattr(jit_module, "MAX_TRACED", 8)
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
    monkeypatch.setattr(jit_module, "PROGRAM_BYTES", 2_000_000)
    monkeypatch.setattr(jit_module, "LEAST", 3)
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


def test_a_callback_that_fails_after_a_donation_is_the_error():
    def fails(v):
        raise ValueError("boom")

    f = jit(lambda x: fxflow.pure_callback(fails, x, x) + 1, donate_argnums=0)
    for _ in range(2):
        with pytest.raises(ValueError, match="boom"):
            f(fnp.ones(60_000))
