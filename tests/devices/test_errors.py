from fxflow.devices import errors


def test_they_are_runtime_errors() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), RuntimeError | ValueError)
    assert errors.CompileError("x").module_text is None
