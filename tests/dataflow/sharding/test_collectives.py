"""Collectives, predicted and read from programs."""

from __future__ import annotations

import pytest

import fxflow
from fxflow import NamedSharding, P
from fxflow import numpy as fnp
from fxflow.dataflow.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    Collective,
    MeshSizes,
    axis_names,
    compiled,
    resharding,
    summing,
    totals,
)
from fxflow.sharding import AbstractMesh

SIZES = MeshSizes([2, 4])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1, 0), (1, 0), []),
        ((0, 0), (1, 2), []),
        ((1, 0), (0, 0), [Collective(ALL_GATHER, 1, 64.0)]),
        ((1, 2), (0, 2), [Collective(ALL_GATHER, 1, 16.0)]),
        ((2, 0), (0, 2), [Collective(ALL_TO_ALL, 2, 16.0)]),
        ((3, 0), (0, 0), [Collective(ALL_GATHER, 3, 64.0)]),
    ],
)
def test_a_change_of_division(
    before: tuple[int, int], after: tuple[int, int], expected: list[Collective]
) -> None:
    assert list(resharding(64, before, after, SIZES)) == expected


def test_sums() -> None:
    assert list(summing(64, 1, 0, SIZES)) == [Collective(ALL_REDUCE, 1, 64)]
    assert list(summing(64, 3, 2, SIZES)) == [
        Collective(REDUCE_SCATTER, 2, 64),
        Collective(ALL_REDUCE, 1, 16.0),
    ]
    assert not list(summing(64, 0, 3, SIZES))


def test_collectives_of_a_compiled_program() -> None:
    mesh = fxflow.make_mesh((2, 4), ("x", "y"))
    where = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y"))
    product = fxflow.jit(
        fnp.matmul, in_shardings=where, out_shardings=NamedSharding(mesh, P("x"))
    )
    types = [fxflow.ShapeDtypeStruct((8, 8), "float32")] * 2
    text = product.lower(*types).compile().as_text()
    assert totals(compiled(text, mesh)) == {(ALL_REDUCE, 2): (1, 128)}


def test_a_loop_runs_its_collectives_several_times() -> None:
    mesh = fxflow.make_mesh((4,), ("x",))
    where = NamedSharding(mesh, P("x"))

    def f(x: fxflow.Array) -> fxflow.Array:
        body = lambda i, y: y + fnp.sum(x * y)
        return fxflow.lax.fori_loop(0, 7, body, x)

    jitted = fxflow.jit(f, in_shardings=where, out_shardings=where)
    text = jitted.lower(fxflow.ShapeDtypeStruct((8,), "float32")).compile().as_text()
    ((key, (count, nbytes)),) = totals(compiled(text, mesh)).items()
    assert key == (ALL_REDUCE, 1) and count == 7 and nbytes == 28


HLO = """HloModule m

ENTRY %main (p: f32[8]) -> f32[8] {
  %a = f32[4,2]{1,0} all-gather(%p), replica_groups=[2,4]<=[8], dimensions={0}
  %b = bf16[16]{0} reduce-scatter(%p), replica_groups={{0,4},{1,5},{2,6},{3,7}}
  %c = (f32[2]{0}, s8[3]{0}) all-to-all(%p, %q), replica_groups=[4,2]<=[2,4]T(1,0)
  %d = f32[8]{0} all-reduce(%p), replica_groups=[8,1]<=[8]
  %e = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,2}}
  ROOT %f = f32[8]{0} all-reduce(%p), replica_groups={}, to_apply=%sum
}
"""


def test_notations_of_groups() -> None:
    mesh = AbstractMesh((2, 4), ("x", "y"))
    found = [collective for collective, _ in compiled(HLO, mesh)]
    assert found == [
        Collective("all-gather", 2, 32.0),
        Collective("reduce-scatter", 1, 64.0),
        Collective("all-to-all", 1, 11.0),
        Collective("collective-permute", 2, 32.0),
        Collective("all-reduce", 3, 32.0),
    ]


def test_names_of_axes() -> None:
    mesh = AbstractMesh((2, 4), ("x", "y"))
    assert axis_names(mesh, 3) == ("x", "y") and axis_names(mesh, 2) == ("y",)
