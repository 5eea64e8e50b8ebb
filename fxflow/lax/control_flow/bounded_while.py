"""Reverse mode of loops whose number of steps has a bound: chunks, computed again."""

from __future__ import annotations

import math
from typing import Any

from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import split_at
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.remat import Checkpoint


def as_scans(
    condition: Graph, body: Graph, num_condition: int, num_body: int, bound: int
) -> Graph:
    """Returns a loop of at most `bound` steps as a graph that has a reverse mode.

    A scan goes over √bound chunks, each a scan over √bound steps. What a chunk starts
    with is kept; the steps of a chunk are computed again when its cotangents are. A
    chunk, or step, after the end of the loop costs a test of the condition.

    Args:
      condition: of its constants and the carry to one bool.
      body: of its constants and the carry to the carry.
      num_condition: how many constants the condition has.
      num_body: how many constants the body has.
      bound: the most steps.

    Returns:
      A graph of the constants of both and the carry, to the last carry.
    """

    def derive() -> Graph:
        chunks = math.isqrt(max(bound, 1) - 1) + 1
        steps = max(1, -(-bound // chunks))
        fixed = num_condition + num_body
        of_body = body.in_avals
        avals = [*condition.in_avals[:num_condition], *of_body]

        def goes_on(values: Any, carry: Any) -> Any:
            return condition.evaluate(*values[:num_condition], *carry)[0]

        def unless_over(values: Any, carry: Any, function: Any) -> Any:
            return cond(goes_on(values, carry), function, lambda *c: list(c), *carry)

        def chunk(*values: Any) -> list[Any]:
            constants = values[num_condition:fixed]

            def step(carry: Any, _: Any) -> Any:
                new = unless_over(
                    values, carry, lambda *c: body.evaluate(*constants, *c)
                )
                return new, None

            return scan(step, list(values[fixed:]), None, length=steps)[0]

        graph = trace_closed(chunk, avals, name=body.name)

        def loop(*values: Any) -> list[Any]:
            constants, first = split_at(values, fixed)

            def part(carry: Any, _: Any) -> Any:
                new = unless_over(
                    values,
                    carry,
                    lambda *c: Checkpoint.bind(
                        *constants,
                        *c,
                        graph=graph,
                        policy=None,
                        prevent_cse=False,
                        again=False,
                    ),
                )
                return new, None

            return scan(part, first, None, length=chunks)[0]

        return trace_closed(loop, avals, name=body.name)

    key = "as_scans", condition, num_condition, num_body, bound
    return body.remembered(key, derive)
