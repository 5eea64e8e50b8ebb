"""What `checkpoint` keeps, seen in the graphs of the derivative."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import checkpoint, jit, lax, make_graph
from fxflow import checkpoint_policies as policies
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.higher_order import live_flags
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.remat import inlined, split_for
from fxflow.transforms.checkpoint import checkpoint_name

X = np.ones((4,), np.float32)
W = np.ones((4, 4), np.float32)


def layers(x, w):
    for i in range(2):
        y = lax.dot_general(x, w, (((0,), (0,)), ((), ())))
        x = checkpoint_name(jit(lax.sin)(y), f"act{i}")
    return lax.reduce_sum(lax.mul(x, x), (0,))


def split(policy):
    avals = [Aval(v.shape, v.dtype) for v in (X, W)]
    graph, _ = trace_flat(lambda *args: [layers(*args)], avals)
    return split_for(graph, [True, True], policy)


def names(graph):
    return [n.primitive.name for n in graph.nodes]


def kept(policy):
    """Types of what is kept beside the arguments."""
    found = split(policy)
    return [str(a) for a in found.primal.out_avals[1:]]


def again(policy):
    return names(split(policy).tangent)


def test_saving_nothing_computes_all_again():
    for policy in (None, policies.nothing_saveable):
        assert kept(policy) == []
        assert again(policy).count("sin") == 2


def test_everything():
    assert "sin" not in again(policies.everything_saveable)
    assert len(kept(policies.everything_saveable)) == 4, "2 cosines, 2 activations"


def test_dots():
    for policy in (policies.dots_saveable, policies.dots_with_no_batch_dims_saveable):
        assert kept(policy) == ["f32[4]", "f32[4]"]
        # Only the products of the tangents remain, not those of the values.
        assert again(policy).count("dot_general") == again(
            policies.everything_saveable
        ).count("dot_general")
        assert again(policy).count("sin") == 2


def test_batched_dots_are_not_kept_if_so_asked():
    def run(x):
        both = lax.dot_general(x, x, (((2,), (1,)), ((0,), (0,))))
        return lax.reduce_sum(lax.sin(both), (0, 1, 2))

    aval = Aval((2, 3, 3), np.dtype(np.float32))
    graph, _ = trace_flat(lambda x: [run(x)], [aval])
    count = lambda policy: len(split_for(graph, [True], policy).primal.outputs) - 1
    assert count(policies.dots_saveable) == 1
    assert count(policies.dots_with_no_batch_dims_saveable) == 0


def test_policies_save_by_name():
    only = policies.save_only_these_names("act0")
    assert kept(only) == ["f32[4]"]
    assert again(only).count("sin") == 1, "the second is computed again"
    assert len(kept(policies.save_only_these_names("act0", "act1"))) == 2
    assert len(kept(policies.save_any_names_but_these("act0"))) == 1
    assert kept(policies.save_only_these_names("other")) == []
    both = policies.save_from_both_policies(only, policies.dots_saveable)
    assert len(kept(both)) == 3
    rest = policies.save_anything_except_these_names("act0")
    assert again(rest).count("sin") == 1, "act0 alone is computed again"


def test_own_policy_sees_primitive_types_and_parameters():
    seen = []

    def policy(primitive, *avals, **params):
        seen.append((primitive.name, [str(a) for a in avals], sorted(params)))
        return primitive.name == "cos"

    assert len(kept(policy)) == 2
    assert ("name", ["f32[4]"], ["name"]) in seen


def test_calls_are_written_out():
    graph, _ = trace_flat(
        lambda x: [jit(lambda x: jit(lax.sin)(lax.cos(x)))(x), jit(lax.sin)(x)],
        [Aval((), np.dtype(np.float32))],
    )
    flat = inlined(graph)
    flat.check()
    assert names(flat) == ["cos", "sin", "sin"]
    assert inlined(flat) is flat


def test_stacked_values_in_a_scan():
    def run(x, policy):
        step = checkpoint(
            lambda c: checkpoint_name(lax.exp(lax.sin(lax.mul(c, c))), "e"),
            policy=policy,
            prevent_cse=False,
        )
        body = lambda c, _: (lax.sin(step(c)), None)
        out, _ = lax.scan(body, x, None, length=9)
        return lax.reduce_sum(out, (0,))

    def stacked(policy):
        graph = make_graph(fxflow.grad(lambda x: run(x, policy)))(X)
        node = next(n for n in graph.nodes if n.primitive.name == "scan")
        return sum(v.aval.shape == (9, 4) for v in node.outputs)

    # The cosine of the outer sine and the carry; with a policy also what it keeps.
    assert stacked(None) == 2
    assert stacked(policies.save_only_these_names("e")) == 3
    assert stacked(policies.everything_saveable) == 4, "the product, too, keeps c"


def test_recomputation_is_behind_a_barrier():
    f = lambda x: lax.reduce_sum(lax.sin(lax.sin(x)), (0,))
    text = jit(fxflow.grad(checkpoint(f))).lower(X).as_text()
    assert "optimization_barrier" in text
    text = jit(fxflow.grad(checkpoint(f, prevent_cse=False))).lower(X).as_text()
    assert "optimization_barrier" not in text
    assert "optimization_barrier" not in jit(checkpoint(f)).lower(X).as_text()


def test_compiled_program_needs_less_memory():
    def deep(x, w):
        for _ in range(8):
            x = lax.sin(lax.dot_general(x, w, (((1,), (0,)), ((), ()))))
        return x

    def memory(wrap):
        def loss(w):
            body = lambda c, _: (wrap(deep)(c, w), None)
            out = lax.scan(body, np.ones((64, 32), np.float32), None, length=8)[0]
            return lax.reduce_sum(out, (0, 1))

        compiled = jit(fxflow.grad(loss)).lower(np.ones((32, 32), np.float32)).compile()
        return compiled.memory_analysis()["temp_size_in_bytes"]

    assert memory(checkpoint) < 0.4 * memory(lambda f: f)


def test_checkpoint_name_adds_no_operation():
    text = jit(lambda x: checkpoint_name(x, "a")).lower(X).as_text()
    assert "stablehlo" not in text


def test_live_flags_of_unused_arguments():
    f = checkpoint(lambda x, y: lax.sin(x))
    by_x, by_y = fxflow.grad(f, (0, 1))(0.0, 1.0)
    assert (float(by_x), float(by_y)) == (1.0, 0.0)
    assert live_flags([1.0]) == [True]
    with pytest.raises(TypeError):
        checkpoint_name(X, 3)
