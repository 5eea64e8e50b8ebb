"""Kernels become calls of machine code."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.lax.kernels.native import is_enabled
from fxflow.transforms.passes.kernels import compile_kernels
from tests.lax.kernels.samples import arrays, flash

pytest.importorskip("llvmlite")


def is_native(f: Any, *args: Any) -> bool:
    """Whether a jitted function calls a compiled kernel."""
    return "fxflow_kernel_" in fxflow.jit(f).lower(*args).as_text()


def test_jitted_functions_call_machine_code() -> None:
    given = arrays()
    assert is_native(flash, *given)

    def slopes(*args: Any) -> Any:
        return fxflow.grad(lambda *a: fnp.sum(flash(*a) ** 2), argnums=(0, 1, 2))(*args)

    assert is_native(slopes, *given)
    assert is_native(fxflow.vmap(flash), *arrays(2))
    with fxflow.config.override(passes="none"):
        assert not is_enabled()
        assert not is_native(lambda *args: flash(*args), *given)


def test_other_platforms_get_the_portable_form() -> None:
    given = arrays()
    text = fxflow.jit(flash).trace(*given).lower(platforms=("cuda",)).as_text()
    assert "fxflow_kernel_" not in text


def test_a_graph_without_kernels_is_left_as_it_is() -> None:
    graph = fxflow.make_graph(fnp.sin)(1.0).graph
    assert compile_kernels(graph) is graph
