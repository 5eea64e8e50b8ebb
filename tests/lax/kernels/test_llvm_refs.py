"""Reads and writes of references in compiled kernels: against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.core.ir.primitive import table
from fxflow.kernels.gallery.rows import update_rows
from fxflow.lax.kernels.llvm_refs import RULES
from tests.lax.kernels.samples import Bodies, called, noting, same

pytest.importorskip("llvmlite")

X = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
BODIES: Bodies = {}
body = noting(BODIES, X)


@body()
def read_after_write(x: Any, o: Any) -> None:
    o[...] = x[...]
    before = o[...]
    o[...] = o[...] * 2
    o[1:3, ::2] += before[1:3, ::2]
    o[0] = before[5]
    fxflow.ref.addupdate(o, (4, slice(2, 6)), before[4, 2:6])


@body()
def swapped(x: Any, o: Any) -> None:
    cell = fxflow.new_ref(x[...] * 2)
    old = fxflow.ref.swap(cell, (slice(0, 2),), fnp.zeros((2, 16)))
    o[...] = cell[...]
    o[2:4] += old


@body()
def indices_are_wrapped_and_clamped(x: Any, o: Any) -> None:
    o[...] = x[...]

    @kernels.loop(0, 9)
    def _(i: Any) -> None:
        # From the end, and behind it: reads are clamped, writes are dropped.
        o[i] = x[-1 - i % 6]
        o[2, i + 9] = x[i, 3]


@body()
def slices_behind_the_end(x: Any, o: Any) -> None:
    o[...] = x[...]
    start = kernels.program_id(0) + 4
    o[kernels.ds(start, 4)] = x[kernels.ds(start - 1, 4)] * 2
    o[0, kernels.ds(start + 7, 8)] = x[1, kernels.ds(start + 5, 8)]
    o[:2, kernels.ds(14, 4)] = x[2:4, kernels.ds(13, 4)]


# -- control flow ----------------------------------------------------------------------


@pytest.mark.parametrize("name", BODIES)
def test_a_compiled_body_gives_what_numpy_gives(name: str) -> None:
    same(called(*BODIES[name]), X)


def test_rows_of_large_arrays_are_asked_for_in_advance() -> None:
    def subtracted(ids: Any, gradients: Any, place: Any, table: Any) -> list[Any]:
        return [place, table.at[ids].add(-gradients)]

    def run(*given: Any) -> list[Any]:
        ids, gradients, place, *held = given
        return update_rows(
            lambda rows, g: [rows[0] - g],
            *(ids, gradients, place, held),
            reference=subtracted,
        )

    rng = np.random.default_rng(0)
    for count, asks in ((100, 0), (20_000, 1)):
        # Ids beyond the last one, of memory that is not written, are asked for, too.
        ids = rng.integers(0, count, 40).astype("int32")
        table = rng.normal(size=(count, 4)).astype("f")
        gradients = rng.normal(size=(40, 4)).astype("f")
        given = [fnp.asarray(x) for x in (ids, gradients, ids[:count], table)]
        text = kernels.explain(run, *given, platform="cpu")
        assert text.count("call void @llvm.prefetch") == asks
        kernels.check(run, *given)


def test_rules_are_of_primitives() -> None:
    assert set(RULES) <= set(table)
