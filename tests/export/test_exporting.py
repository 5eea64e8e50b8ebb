"""`export`: what can be exported, and what is refused."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, ffi, random
from fxflow.errors import ArgumentError, ExportError

F32 = np.float32


def loaded(made, order=0):
    return export.deserialize(made.serialize(order))


def test_types_suffice_as_arguments():
    spec = fxflow.ShapeDtypeStruct((2, 3), F32)
    made = export.export(fxflow.jit(lambda x, *, y: x @ y))(spec, y=fnp.ones((3, 1)))
    result = loaded(made).call(fnp.ones((2, 3)), y=fnp.ones((3, 1)))
    np.testing.assert_array_equal(result, np.full((2, 1), 3))


def test_weak_types_become_strong():
    made = export.export(fxflow.jit(lambda x: x * 2))(1.0)
    assert [str(a) for a in (*made.in_avals, *made.out_avals)] == ["f32[]"] * 2
    assert float(loaded(made).call(3.0)) == 6


def test_captured_arrays_are_included():
    weights, key = fnp.arange(40.0).reshape(2, 20), random.key(3)
    bits = fnp.array([True, False])

    def function(x):
        return x @ weights, random.uniform(key, (2,)), fnp.where(bits, x, 0)

    made = export.export(fxflow.jit(function))(fnp.ones(2))
    for a, b in zip(loaded(made).call(fnp.ones(2)), function(fnp.ones(2)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    slope = fxflow.grad(lambda x: loaded(made, 1).call(x)[0].sum())(fnp.ones(2))
    np.testing.assert_allclose(slope, weights.sum(1), rtol=1e-6)


def test_static_and_donated_arguments():
    function = fxflow.jit(
        lambda x, n: fnp.tile(x, n), static_argnums=1, donate_argnums=()
    )
    assert loaded(export.export(function)(fnp.ones(2), 3)).call(fnp.ones(2)).shape == (
        6,
    )
    x = fnp.ones(2)
    donating = loaded(export.export(fxflow.jit(lambda x: x + 1, donate_argnums=0))(x))
    donating.call(x)
    np.testing.assert_array_equal(donating.call(x), [2, 2])


def test_functions_without_arguments_or_results():
    made = loaded(export.export(fxflow.jit(lambda x: ()))(1.0))
    assert made.call(1.0) == () and made.module_kept_var_idx == ()
    both = ("cpu", "tpu")
    assert (
        loaded(export.export(fxflow.jit(lambda x: ()), platforms=both)(1.0)).call(0.0)
        == ()
    )
    constant = loaded(export.export(fxflow.jit(lambda: fnp.arange(3)))())
    np.testing.assert_array_equal(constant.call(), [0, 1, 2])


def test_platforms_share_identical_programs():
    made = export.export(fxflow.jit(fnp.sin), platforms=("cpu", "gpu", "tpu"))(1.0)
    assert made.platforms == ("cpu", "cuda", "tpu") and made.uses_global_constants
    text = made.mlir_module()
    assert text.count("stablehlo.sine") == 1 and "stablehlo.case" not in text
    assert '_platform_index"' in text
    made = export.export(fxflow.jit(fnp.linalg.cholesky), platforms=("cpu", "tpu"))
    text = made(fnp.eye(2)).mlir_module()
    assert "stablehlo.case" in text and "lapack_spotrf_ffi" in text
    np.testing.assert_array_equal(loaded(made(fnp.eye(2))).call(fnp.eye(2)), np.eye(2))


def test_several_devices_and_their_derivative():
    mesh = fxflow.make_mesh((2, 2), ("i", "j"))
    where = fxflow.NamedSharding(mesh, fxflow.P("i", "j"))
    captured = fnp.arange(4.0)
    function = fxflow.jit(lambda x: fnp.sin(x) * captured, in_shardings=where)
    made = export.export(function)(fnp.ones((2, 4)))
    assert made.nr_devices == 4
    x = fxflow.device_put(fnp.arange(8.0).reshape(2, 4), where)
    again = loaded(made, 1)
    assert again.in_shardings_jax(mesh) == (where,)
    np.testing.assert_allclose(again.call(x), np.sin(x) * captured, rtol=1e-6)
    slope = fxflow.grad(lambda x: again.call(x).sum())(x)
    np.testing.assert_allclose(slope, np.cos(x) * captured, rtol=1e-5)


def test_names_of_lambdas_have_no_path():
    made = export.export(fxflow.jit(lambda x: fnp.sin(x)))(1.0)
    assert made.fun_name == "<lambda>"
    assert (
        b"/" not in made.fun_name.encode() and b"test_exporting" not in made.serialize()
    )


def test_plain_functions_and_unknown_platforms_are_refused():
    with pytest.raises(ArgumentError, match="expected a jitted function"):
        export.export(fnp.sin)
    for platforms, message in (
        ("cpu", "sequence"),
        ((), "sequence"),
        (("abc",), "abc"),
    ):
        with pytest.raises(ArgumentError, match=message):
            export.export(fxflow.jit(fnp.sin), platforms=platforms)
    with pytest.raises(ArgumentError, match="DisabledSafetyChecks"):
        export.export(fxflow.jit(fnp.sin), disabled_checks=["platform"])


def test_effects_and_callbacks_are_refused():
    def prints(x):
        fxflow.debug.print("{}", x)
        return x

    with pytest.raises(ExportError, match="prints has effects"):
        export.export(fxflow.jit(prints))(1.0)

    def calls_back(x):
        return fxflow.pure_callback(np.sin, fxflow.ShapeDtypeStruct((), F32), x)

    with pytest.raises(ExportError, match="calls back into Python"):
        export.export(fxflow.jit(calls_back))(1.0)
    ref = fxflow.new_ref(fnp.ones(2))
    with pytest.raises(ExportError, match="references"):
        export.export(fxflow.jit(lambda x: ref[...] + x))(1.0)


def test_traced_values_are_refused():
    def outer(x):
        return export.export(fxflow.jit(lambda y: x + y))(1.0).call(2.0)

    with pytest.raises(ArgumentError, match="captures a traced value"):
        fxflow.jit(outer)(1.0)


def test_custom_calls_must_be_allowed():
    kernel = ffi.ffi_call("my_kernel", fxflow.ShapeDtypeStruct((2,), F32))
    with pytest.raises(ExportError, match="calls 'my_kernel'"):
        export.export(fxflow.jit(kernel))(fnp.ones(2))
    check = export.DisabledSafetyCheck.custom_call("my_kernel")
    made = export.export(fxflow.jit(kernel), disabled_checks=[check])(fnp.ones(2))
    assert loaded(made).disabled_safety_checks == (check,)
    # The loaded program calls the target, which does not exist here.
    assert "my_kernel" in fxflow.jit(loaded(made).call).lower(fnp.ones(2)).as_text()


def test_default_platform():
    assert export.default_export_platform() == "cpu"
    assert export.export(fxflow.jit(fnp.sin))(1.0).platforms == ("cpu",)
