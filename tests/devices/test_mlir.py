import pytest

from fxflow.devices import mlir

from . import programs


def test_parse() -> None:
    module = mlir.parse(programs.ADD)
    assert "stablehlo.add" in str(module)
    sharded = mlir.parse('module { sdy.mesh @mesh = <["x"=2]> }')
    assert "sdy.mesh" in str(sharded)


def test_parsing_malformed_text_raises() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        mlir.parse(programs.ADD.replace("stablehlo.add", "stablehlo.nonsense"))
