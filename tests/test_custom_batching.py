"""The public module; its functions are tested in `transforms/test_custom_vmap`."""

import fxflow
from fxflow import custom_batching


def test_public_names_exist():
    assert set(custom_batching.__all__) == {"custom_vmap", "sequential_vmap"}
    assert "custom_batching" in dir(fxflow)
