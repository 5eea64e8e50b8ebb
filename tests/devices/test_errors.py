from fxflow.devices import errors


def test_they_are_runtime_errors() -> None:
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, RuntimeError | ValueError | MemoryError)
    assert errors.CompileError("x").module_text is None
