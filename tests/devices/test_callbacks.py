"""Programs that call Python: arguments and results, effects, exceptions, checks."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fxflow.devices import buffers, callbacks
from fxflow.devices.buffers import BufferType, Placement
from fxflow.devices.callbacks import HostCallback, custom_call
from fxflow.devices.compile import Executable
from fxflow.devices.compile import compile as compile_text

Put = Callable[..., buffers.Buffer]

SCALE = """module @scale {
  func.func @main(%a: tensor<2x3xf32>, %n: tensor<i32>)
      -> (tensor<3x2xf32>, tensor<i1>) {
  %t = stablehlo.transpose %a, dims = [1, 0]
    : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r:2 = CALL
  return %r#0, %r#1 : tensor<3x2xf32>, tensor<i1> } }""".replace(
    "CALL",
    custom_call(
        0,
        ["%t", "%n"],
        ["tensor<3x2xf32>", "tensor<i32>"],
        ["tensor<3x2xf32>", "tensor<i1>"],
    ),
)
SCALE_RESULTS = (((3, 2), "f4"), ((), "?"))


def run_scale(place: Placement, put: Put, function: Callable[..., Any]) -> list[Any]:
    program = compile_text(
        SCALE, place, callbacks=[HostCallback(function, SCALE_RESULTS)]
    )
    return execute(program, place, [put(A, "f4"), put(3, "i4")], SCALE_RESULTS)


def execute(
    program: Executable,
    place: Placement,
    arguments: Sequence[buffers.Buffer],
    results: Sequence[tuple[tuple[int, ...], Any]],
) -> list[Any]:
    handlers = [
        buffers.result_handler(BufferType(s, np.dtype(d)), place, False)
        for s, d in results
    ]
    return [buffers.to_host(x) for x in program.execute(arguments, handlers)]


A = np.arange(6.0).reshape(2, 3)


def test_callbacks_get_and_return_arrays(place: Placement, put: Put) -> None:
    def scale(x: np.ndarray, n: np.ndarray) -> tuple[Any, Any]:
        assert (x.shape, x.dtype, n.shape, n.dtype) == ((3, 2), "f4", (), "i4")
        assert not x.flags.writeable
        return x * np.float32(n), bool(n > 2)

    scaled, flag = run_scale(place, put, scale)
    np.testing.assert_array_equal(scaled, A.T * 3)
    assert flag.dtype == bool
    assert flag


def test_results_may_have_any_strides(place: Placement, put: Put) -> None:
    scaled, _ = run_scale(
        place, put, lambda x, n: [np.arange(6, dtype="f4").reshape(2, 3).T, True]
    )
    np.testing.assert_array_equal(scaled, A.T)


def test_operands_may_be_kept(place: Placement, put: Put) -> None:
    kept = []

    def keep(x: np.ndarray, n: np.ndarray) -> tuple[Any, Any]:
        kept.append(x)
        return x, True

    for _ in range(3):
        run_scale(place, put, keep)
    for x in kept:
        np.testing.assert_array_equal(x, A.T)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("?", "i1"),
        ("i1", "i8"),
        ("u2", "ui16"),
        ("i8", "i64"),
        ("f2", "f16"),
        ("f8", "f64"),
        ("c8", "complex<f32>"),
        ("c16", "complex<f64>"),
        (ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.int4, "i4"),
        (ml_dtypes.float8_e4m3fn, "f8E4M3FN"),
    ],
)
def test_callbacks_take_and_give_every_dtype(
    place: Placement, put: Put, dtype: Any, text: str
) -> None:
    kind = f"tensor<2x3x{text}>"
    module = f"""module @m {{ func.func @main(%a: {kind}) -> {kind} {{
      %r = {custom_call(0, ["%a"], [kind], [kind])}
      return %r : {kind} }} }}"""
    host = np.arange(6).reshape(2, 3).astype(dtype)
    results = [((2, 3), dtype)]
    program = compile_text(
        module, place, callbacks=[HostCallback(lambda x: (x.copy(),), results)]
    )
    (back,) = execute(program, place, [put(host)], results)
    assert back.dtype == host.dtype
    assert back.tobytes() == host.tobytes()


def test_effects_happen_once_each_and_in_order(place: Placement, put: Put) -> None:
    token = "!stablehlo.token"
    kind = "tensor<2xf32>"

    def call(index: int, token_name: str) -> str:
        return custom_call(
            index,
            [token_name, "%a"],
            [token, kind],
            [token],
            has_side_effect=True,
        )

    module = f"""module @m {{ func.func @main(%a: {kind}) -> {kind} {{
      %t0 = stablehlo.create_token : {token}
      %t1 = {call(1, "%t0")}
      %t2 = {call(0, "%t1")}
      return %a : {kind} }} }}"""
    said: list[str] = []
    program = compile_text(
        module,
        place,
        callbacks=[
            HostCallback(lambda x: said.append(f"second {x[1]}")),
            HostCallback(lambda x: said.append(f"first {x[0]}")),
        ],
    )
    handler = buffers.result_handler(BufferType((2,), np.dtype("f4")), place, False)
    for _ in range(2):
        results, done = program.execute_with_token([put([1, 2], "f4")], [handler])
        done.block_until_ready()
        assert len(results) == 1
    assert said == ["first 1.0", "second 2.0"] * 2


def test_exceptions_reach_the_caller_unchanged(place: Placement, put: Put) -> None:
    class Mine(Exception):
        pass

    original = Mine("the message")

    def fail(x: np.ndarray, n: np.ndarray) -> None:
        raise original

    for _ in range(2):
        with pytest.raises(Mine, match="the message") as caught:
            run_scale(place, put, fail)
        assert caught.value is original
    assert any(entry.name == "fail" for entry in caught.traceback)


def test_a_late_exception_is_raised_where_the_result_is_awaited(
    place: Placement, put: Put
) -> None:
    # A large product runs on another thread, so the program is launched before it
    # fails (unless the runtime chooses to run it at once).
    kind = "tensor<800x800xf32>"
    module = f"""module @m {{ func.func @main(%a: {kind}) -> {kind} {{
      %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
        : ({kind}, {kind}) -> {kind}
      %r = {custom_call(0, ["%b"], [kind], [kind])}
      return %r : {kind} }} }}"""

    def fail(x: np.ndarray) -> None:
        raise LookupError("late")

    results = [((800, 800), "f4")]
    program = compile_text(module, place, callbacks=[HostCallback(fail, results)])
    handler = buffers.result_handler(
        BufferType((800, 800), np.dtype("f4")), place, False
    )
    argument = put(np.ones((800, 800)), "f4")

    def wait() -> None:
        (result,) = program.execute([argument], [handler])
        buffers.block_until_ready([result])

    def fetch() -> None:
        (result,) = program.execute([argument], [handler])
        buffers.to_host(result)

    for use in (wait, fetch):
        with pytest.raises(LookupError, match="late"):
            use()


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (np.zeros((3, 2), "f4"), TypeError, "expected a tuple of 2 results, got nd"),
        ((), ValueError, "expected 2 results, got 0"),
        (None, ValueError, "expected 2 results, got 0"),
        (
            (np.zeros((2, 3), "f4"), True),
            ValueError,
            r"result 0 was declared float32\[3, 2\], but .* float32\[2, 3\]",
        ),
        (
            (np.zeros((3, 2), "f8"), True),
            ValueError,
            r"but the function returned float64\[3, 2\]",
        ),
        ((np.zeros((3, 2), "f4"), [True]), ValueError, r"result 1 .* bool\[1\]"),
    ],
)
def test_wrong_results_are_refused(
    place: Placement, put: Put, returned: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_scale(place, put, lambda x, n: returned)


def test_other_errors_have_no_original() -> None:
    assert callbacks.original_error(RuntimeError("out of memory")) is None
    callbacks.raise_original(RuntimeError("out of memory"))


def test_exceptions_are_kept_for_many_callers_and_frames_for_few() -> None:
    def fail(number: int) -> None:
        raise ValueError(f"the user's, {number}")

    seen = []
    for i in range(50):
        with pytest.raises(callbacks._InCallback) as caught:
            HostCallback(lambda i=i: fail(i))()
        seen.append(caught.value)
    found = [callbacks.original_error(error) for error in seen]
    assert [str(error) for error in found] == [f"the user's, {i}" for i in range(50)]
    framed = [error.__traceback__ is not None for error in found if error is not None]
    assert sum(framed) <= callbacks._WITH_FRAMES
    assert framed[-1] and not framed[0]
    assert found[0] is not None and "in fail" in found[0].__notes__[0]
    assert callbacks.original_error(seen[-1]) is found[-1], "it may be asked for again"
    assert len(callbacks._retrieved) <= callbacks._RETRIEVED


def test_exceptions_that_no_caller_retrieves_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callbacks, "_KEPT", 20)
    for _ in range(50):
        with pytest.raises(callbacks._InCallback):
            HostCallback(lambda: {}["x"])()
    assert len(callbacks._raised) == 20


def test_programs_with_callbacks_are_cached(
    place: Placement, put: Put, cache_dir: Path
) -> None:
    def run(factor: int) -> tuple[bool, Any]:
        callback = HostCallback(
            lambda x, n: (x * np.float32(factor), True), SCALE_RESULTS
        )
        program = compile_text(SCALE, place, callbacks=[callback])
        out = execute(program, place, [put(A, "f4"), put(3, "i4")], SCALE_RESULTS)
        return program.from_cache, out[0]

    cached, first = run(2)
    assert not cached
    np.testing.assert_array_equal(first, A.T * 2)
    cached, second = run(5)  # the same program calls another function
    assert cached
    np.testing.assert_array_equal(second, A.T * 5)


def test_callbacks_from_several_threads(place: Placement, put: Put) -> None:
    program = compile_text(
        SCALE,
        place,
        callbacks=[HostCallback(lambda x, n: (x + np.float32(n), True), SCALE_RESULTS)],
    )
    wrong = []

    def work(number: int) -> None:
        for _ in range(20):
            arguments = [put(A, "f4"), put(number, "i4")]
            out = execute(program, place, arguments, SCALE_RESULTS)[0]
            if not np.array_equal(out, A.T + number):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_text_of_a_custom_call() -> None:
    text = custom_call(
        2,
        ["%t", "%a"],
        ["!stablehlo.token", "tensor<2x3xf32>"],
        ["!stablehlo.token", "tensor<i32>"],
        platform="gpu",
        has_side_effect=True,
    )
    assert text.startswith("stablehlo.custom_call @xla_ffi_python_gpu_callback(%t, %a)")
    assert "has_side_effect = true" in text
    assert "index = 2 : ui64" in text
    assert "dense<[1, 0]> : tensor<2xindex>" in text
    for platform in ("cpu", "gpu"):
        text = custom_call(
            0, [], [], [], platform=platform, partitioned=True, has_side_effect=True
        )
        assert f"@xla_ffi_partitioned_python_{platform}_callback()" in text
    with pytest.raises(ValueError, match="'tpu' cannot call Python"):
        callbacks.target("tpu")


def test_a_thread_knows_that_it_runs_a_callback() -> None:
    seen: list[bool] = []

    def inner() -> None:
        seen.append(callbacks.in_callback())

    def fails() -> None:
        HostCallback(inner)()
        seen.append(callbacks.in_callback())
        raise ValueError("no")

    with pytest.raises(Exception, match="no"):
        HostCallback(fails)()
    assert seen == [True, True] and not callbacks.in_callback()
