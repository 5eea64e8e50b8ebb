"""How arrays of a program are divided, against what the partitioner does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax, make_graph
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.passes.divisions import (
    divisions,
    joint,
    mesh_of,
    names_in,
    part_of,
)

MESH = fxflow.make_mesh((2, 4), ("a", "b"))
OTHER = fxflow.make_mesh((8,), ("a",))


def where(*spec: Any) -> Any:
    return fxflow.NamedSharding(MESH, P(*spec))


FUNCTIONS = {
    "elementwise": lambda x, w: fnp.where(x > 0, fnp.sin(x), 2.0),
    "broadcast": lambda x, w: x + w[0],
    "reduction": lambda x, w: fnp.sum(x, 2),
    "reduction of the divided axis": lambda x, w: fnp.max(x, 0),
    "argmax": lambda x, w: fnp.argmax(x, -1),
    "product": lambda x, w: x @ w,
    "batched product": lambda x, w: fnp.einsum("nij,nkj->nik", x, x),
    "joined axes": lambda x, w: fnp.reshape(x, (-1, 16)),
    "split axes": lambda x, w: fnp.reshape(x, (8, 4, 4, 4, 4)),
    "length 1": lambda x, w: fnp.reshape(x, (1, 8, 16, 1, 16)),
    "transposed": lambda x, w: fnp.transpose(x, (2, 0, 1)),
    "constraint": lambda x, w: lax.with_sharding_constraint(x * 2, where(None, "a")),
    "rows of a table": lambda x, w: w[fnp.argmax(x, -1)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_partitioner_divides_results_alike(name: str) -> None:
    f = FUNCTIONS[name]
    x, w = np.ones((8, 16, 16), np.float32), np.ones((16, 16), np.float32)
    args = fxflow.device_put(x, where("a")), fxflow.device_put(w, where())
    graph = inlined(make_graph(f)(x, w).graph, CALLS)
    found = divisions(graph, [a.sharding for a in args], MESH)[graph.outputs[0]]
    out = fxflow.jit(f)(*args)
    assert names_in(out.sharding.spec, out.ndim) == found
    assert any(found) == (name != "reduction of the divided axis")


def test_what_is_not_known() -> None:
    def f(x: Any, w: Any) -> Any:
        looped = lax.fori_loop(0, 3, lambda i, x: x * 2, x)
        return looped, fnp.cumsum(x, 1), fnp.reshape(w, (-1,)), x @ x.T

    x = np.ones((8, 8), np.float32)
    graph = inlined(make_graph(f)(x, x).graph, CALLS)
    known = divisions(graph, [where("a"), where(None, "b")], MESH)
    # A product whose both operands are divided along one mesh axis, among others.
    assert all(known.get(v) is None for v in graph.outputs)


def test_meshes_and_parts() -> None:
    assert mesh_of([None]) is None
    assert mesh_of([None, where("a")]) == MESH
    assert mesh_of([where("a"), fxflow.NamedSharding(OTHER, P())]) is None
    assert part_of((8, 6), (("a",), ()), MESH) == (4, 6)
    assert part_of((8, 6), (("a", "b"), ()), MESH) == (1, 6)
    assert part_of((8, 6), ((), ("b",)), MESH) is None
    assert joint([(("a",), ()), ((), ("b",))], 2) == (("a",), ("b",))
    assert joint([(("a",), ()), (("b",), ())], 2) is None
    assert joint([(("a",), ()), ((), ("a",))], 2) is None
