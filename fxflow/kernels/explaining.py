"""`explain`: what the kernels of a function do, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Node, subgraphs
from fxflow.core.ir.higher_order import graph_cost
from fxflow.errors import ArgumentError
from fxflow.lax.kernels.blocks import Block
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.native import llvm_text, why_not
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.triton_call import triton_text, why_no_triton
from fxflow.transforms.inspection import make_graph


def explain(
    function: Callable[..., Any], *args: Any, platform: str | None = None
) -> str:
    """Describes the kernels that a function calls: grid, blocks, memory, body.

    It says whether LLVM compiles a kernel for this CPU, and Triton for NVIDIA's GPUs,
    or why it is run as operations on whole arrays there.

    Args:
      function: a kernel, or a function that calls kernels, also after transformations.
      *args: its arguments, or their types.
      platform: `"cpu"` for LLVM's text of each kernel, too; `"cuda"` for Triton's.

    Returns:
      Text, a part for each kernel in the order of the calls.

    Raises:
      ArgumentError: the function calls no kernel, or `platform` is another.

    Example:
      >>> from fxflow import kernels
      >>> out = lambda x: kernels.like(x, shape=x.shape[:1])
      >>> @kernels.kernel("i:8 v -> i:8", out=out)
      ... def total(x, y):
      ...     y[...] = fnp.sum(x[...], 1)
      >>> print(kernels.explain(total, fnp.ones((20, 4))))
      total: 3 programs (3 parallel), 32 flops and 160 bytes each
      array      type       block  counted by  bytes
      operand 0  f32[20,4]  8 4    0 -           128
      result 0   f32[20]    8      0              32
      on a CPU: compiled
      on an NVIDIA GPU: compiled
      graph total(a: i32[], b: Ref{f32[8,4]}, c: Ref{f32[8]}) {
        d: f32[8,4] = get b
        e: f32[8] = reduce_sum[axes=(1,)] d
        f: f32[8] = swap c e
        return
      }
    """
    if platform not in (None, "cpu", "cuda"):
        raise ArgumentError(
            f'explain: platform is "cpu", "cuda" or None, got {platform!r}'
        )
    traced = make_graph(lambda *given: tree.leaves(function(*given)))(*args)
    found = list(_kernels(traced.graph))
    if not found:
        raise ArgumentError("explain: the function calls no kernel")
    return "\n".join(_explained(node, platform) for node in found)


def _kernels(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.primitive.name == KernelCall.name:
            yield node
        else:
            for _, inner in subgraphs(node.params):
                yield from _kernels(inner)


def _explained(node: Node, platform: str | None) -> str:
    params = KernelParams(**node.params)
    avals = [*(a.aval for a in node.inputs), *params.outs]
    names = [
        *(f"operand {i}" for i in range(params.num_inputs)),
        *(f"result {i}" for i in range(len(params.outs))),
    ]
    rows = [("array", "type", "block", "counted by", "bytes")]
    nbytes = 0
    for name, aval, block in zip(names, avals, params.blocks, strict=True):
        size = Aval(block.seen, aval.dtype).nbytes
        nbytes += size
        rows.append((name, str(aval), _shape(block), _index(block), f"{size:,}"))
    for i, aval in enumerate(params.scratch):
        nbytes += aval.nbytes
        shape = " ".join(map(str, aval.shape)) or "-"
        rows.append((f"scratch {i}", str(aval), shape, "", f"{aval.nbytes:,}"))
    counts = ", ".join(
        f"{n} {kind}" for n, kind in zip(params.grid, params.kinds, strict=True)
    )
    flops = graph_cost(params.pure)["flops"]
    number = params.num_programs
    text = [
        f"{params.graph.name}: {number:,} {'program' if number == 1 else 'programs'}"
        f"{f' ({counts})' if counts else ''}, {flops:,.0f} flops and {nbytes:,} bytes "
        "each"
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [c.ljust(w) for c, w in zip(row[:-1], widths[:-1], strict=True)]
        text.append("  ".join([*padded, row[-1].rjust(widths[-1])]).rstrip())
    operands = [a.aval for a in node.inputs]
    whole = "operations on arrays" if params.reference is None else "the reference"
    for where, why in (
        ("a CPU", why_not(params, operands)),
        ("an NVIDIA GPU", why_no_triton(params, operands)),
    ):
        text.append(f"on {where}: {f'{whole} ({why})' if why else 'compiled'}")
    if params.why_whole():
        text.append(f"derivatives: those of {whole} ({params.why_whole()})")
    elif params.reference is not None:
        text.append("derivatives: kernels")
    text.append(str(params.graph))
    if platform == "cpu":
        text.append(llvm_text(params, operands))
    elif platform == "cuda":
        text.append(triton_text(params, operands))
    return "\n".join(line.rstrip() for part in text for line in part.split("\n"))


def _shape(block: Block) -> str:
    return " ".join("1 (unseen)" if n is None else str(n) for n in block.shape) or "-"


def _index(block: Block) -> str:
    if block.axes is None:
        return "index map"
    return " ".join("-" if g is None else str(g) for g in block.axes) or "-"
