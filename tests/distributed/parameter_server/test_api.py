from typing import Any

import pytest

from fxflow import optim
from fxflow.distributed.compression import int8
from fxflow.distributed.parameter_server import bsp, parameter_server
from fxflow.errors import ArgumentError


def loss(params: Any, batch: Any) -> Any:
    return (params * batch).sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency": bsp(), "pull": "f8"}, "pull must be 'f32', 'bf16' or 'f16'"),
        ({"consistency": "bsp"}, r"consistency must be bsp\(\).*got 'bsp'"),
        ({"consistency": bsp(), "exchange": "f8"}, "exchange must be 'f32'"),
        ({"consistency": bsp(), "exchange": int8(rounding="stochastic")}, "key"),
        ({"consistency": bsp(), "non_finite": "no"}, "non_finite must be one of"),
        ({"consistency": bsp(), "cluster": {"worker": []}}, "names its servers"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1", "a:1"]}}, "'a:1' twice"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1", ""]}}, "a gap"),
        ({"consistency": bsp(), "cluster": {"ps": ["a:1"], "boss": []}}, "'boss'"),
        ({"consistency": bsp(), "cluster": "/nowhere.json"}, "cannot be read"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_invalid_arguments_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parameter_server(loss, optim.sgd(0.1), **options)
