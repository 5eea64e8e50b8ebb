"""Plans have each row once, are balanced, and change by few bytes."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.placement import (
    Piece,
    PlacementPlan,
    Tensor,
    place,
    replan,
    tensors_of,
)
from fxflow.errors import ArgumentError

shapes = st.one_of(
    st.just(()),
    st.tuples(st.integers(0, 50)),
    st.tuples(st.integers(0, 5_000_000), st.integers(0, 64)),
)
lists = st.lists(shapes, max_size=8).map(
    lambda found: [Tensor(f"t{i}", shape) for i, shape in enumerate(found)]
)
strategies = st.sampled_from(["greedy", "round_robin", "rows"])
limits = st.one_of(st.none(), st.integers(1_000_000, 50_000_000))


def check(plan: PlacementPlan) -> None:
    """Checks that each row of each tensor is in one piece, on one of the servers."""
    for tensor in plan.tensors:
        pieces = plan.of(tensor.name)
        assert pieces, "an empty tensor has a server too"
        assert pieces[0].start == 0 and pieces[-1].stop == tensor.rows
        for a, b in itertools.pairwise(pieces):
            assert a.stop == b.start > a.start
    assert {piece.server for piece in plan.pieces} <= set(plan.servers)
    assert sum(map(len, map(plan.on, plan.servers))) == len(plan.pieces)
    assert sum(s.nbytes for s in plan.shares().values()) == sum(
        tensor.nbytes for tensor in plan.tensors
    )
    assert PlacementPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@settings(max_examples=40)
@given(lists, st.integers(1, 9), strategies, limits)
def test_each_row_lies_on_one_server(
    tensors: list[Tensor], servers: int, strategy: str, limit: int | None
) -> None:
    plan = place(tensors, servers, strategy=strategy, split_above=limit)
    check(plan)
    small = [t for t in tensors if t.nbytes <= (2**20 if limit is None else limit)]
    if strategy != "rows":
        assert all(len(plan.of(tensor.name)) == 1 for tensor in small)
    elif limit is None:
        some = [t for t in tensors if t.rows >= servers and t.nbytes]
        assert all(len(plan.of(tensor.name)) == servers for tensor in some)


@settings(max_examples=40)
@given(lists, st.integers(1, 9))
def test_greedy_is_balanced(tensors: list[Tensor], servers: int) -> None:
    plan = place(tensors, servers)
    loads = [share.nbytes for share in plan.shares().values()]
    fair = sum(loads) / servers
    # A piece that is not cut exceeds what fits by less than 1 MiB, or is one row.
    widest = max((tensor.row_bytes for tensor in tensors), default=0)
    assert max(loads) <= 1.05 * fair + 2 * 2**20 + widest


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 3))
def test_greedy_without_cuts_is_nearly_optimal(sizes: list[int], servers: int) -> None:
    tensors = [Tensor(f"t{i}", (size,)) for i, size in enumerate(sizes)]
    loads = [share.nbytes // 4 for share in place(tensors, servers).shares().values()]
    sums = {(0,) * servers}
    for size in sizes:  # the shares of all possible plans
        sums = {
            tuple(sorted((*s[:i], s[i] + size, *s[i + 1 :])))
            for s in sums
            for i in range(servers)
        }
    assert max(loads) <= 4 / 3 * min(map(max, sums))


def test_greedy_reaches_the_worst_case_of_graham() -> None:
    tensors = [Tensor(f"w{i}", (n, 2**18)) for i, n in enumerate((5, 5, 4, 4, 3, 3, 3))]
    loads = [
        s.nbytes >> 20 for s in place(tensors, 3, split_above=2**30).shares().values()
    ]
    assert sorted(loads) == [8, 8, 11]


def test_round_robin_and_rows_place_tensors_in_order() -> None:
    tensors = [Tensor("a", (4,)), Tensor("b", ()), Tensor("c", (6, 2))]
    plan = place(tensors, 2, strategy="round_robin")
    assert [piece.server for piece in plan.pieces] == [0, 1, 0]
    plan = place(tensors, [4, 2], strategy="rows")
    assert plan.of("a") == (Piece("a", 0, 2, 4), Piece("a", 2, 4, 2))
    assert plan.of("c") == (Piece("c", 0, 3, 4), Piece("c", 3, 6, 2))
    assert len(plan.of("b")) == 1


def test_load_and_bytes_are_both_balanced() -> None:
    table = Tensor("table", (1000, 1000), accesses=0.001)
    tensors = [table, *(Tensor(f"w{i}", (250, 1000)) for i in range(4))]
    shares = place(tensors, 2).shares()
    assert max(share.load for share in shares.values()) <= 0.75 * 4_004_000
    assert max(share.nbytes for share in shares.values()) <= 0.75 * 8_000_000
    tables = [Tensor(f"t{i}", (100, 10), accesses=0) for i in range(4)]
    shares = place([*tables, Tensor("w", (10, 10))], 2).shares()
    assert {share.nbytes for share in shares.values()} == {8000, 8400}


def test_large_tensors_are_split_and_small_ones_leave_servers_empty() -> None:
    plan = place([Tensor("w", (1000, 100_000)), Tensor("b", ())], 4)
    assert [p[1:] for p in plan.of("w")] == [
        (250 * i, 250 * (i + 1), i) for i in range(4)
    ]
    assert {s.nbytes for s in plan.shares().values()} <= {10**8, 10**8 + 4}
    plan = place([Tensor("b", (3,))], 5)
    assert [share.pieces for share in plan.shares().values()] == [1, 0, 0, 0, 0]
    check(place([], 3))


@settings(max_examples=40)
@example([Tensor("t", (23452, 64))], 1, {0, 1, 2, 3, 4, 12})  # shares below 1 MiB
@given(lists, st.integers(1, 9), st.sets(st.integers(0, 12), min_size=1, max_size=9))
def test_replanning_moves_only_what_it_must(
    tensors: list[Tensor], servers: int, after: set[int]
) -> None:
    before = place(tensors, servers)
    plan, moves, nbytes = replan(before, sorted(after))
    check(plan)
    # The moves lead from one plan to the other.
    rows = {
        (p.name, row): p.server
        for p in before.pieces
        for row in {p.start, (p.start + p.stop) // 2, max(p.start, p.stop - 1)}
    }
    for name, row in rows:
        moved = [m for m in moves if m.name == name and m.start <= row < m.stop]
        now = [p.server for p in plan.of(name) if p.start <= row < p.stop]
        source = rows[name, row]
        assert [m.source for m in moved] in ([], [source])
        if now:
            assert now[0] == (moved[0].target if moved else source)
    # Only rows of servers that left, or above a fair share, have moved.
    shares = before.shares()
    fair = sum(share.nbytes for share in shares.values()) / len(after)
    orphaned = sum(s.nbytes for n, s in shares.items() if n not in after)
    excess = sum(max(0, s.nbytes - fair) for n, s in shares.items() if n in after)
    joined = after - set(before.servers)
    assert nbytes <= orphaned + (excess if joined else 0) + 1
    assert all(m.source != m.target for m in moves)
    # Pieces above 1 MiB are cut to fit, so the balance is that of a new plan.
    loads = [share.nbytes for share in plan.shares().values()]
    if joined or max(s.nbytes for s in shares.values()) <= fair:
        widest = max((tensor.row_bytes for tensor in tensors), default=0)
        assert max(loads) <= 1.05 * fair + 2 * 2**20 + widest


def test_replanning_for_the_same_servers_moves_nothing() -> None:
    plan = place([Tensor("w", (4096, 4096)), Tensor("b", (10,))], 3)
    assert replan(plan, 3) == (plan, (), 0)


def test_a_server_is_replaced_by_another() -> None:
    plan = place([Tensor(f"w{i}", (1024, 1024)) for i in range(12)], 4)
    after, moves, nbytes = replan(plan, [0, 1, 7, 3])
    assert {(m.source, m.target) for m in moves} == {(2, 7)}
    assert nbytes == plan.shares()[2].nbytes == after.shares()[7].nbytes


def test_replicas_are_the_next_in_the_ring() -> None:
    plan = place([Tensor("w", (8,))], [3, 5, 8])
    assert plan.replicas(1) == {3: (3,), 5: (5,), 8: (8,)}
    assert plan.replicas(2) == {3: (3, 5), 5: (5, 8), 8: (8, 3)}
    with pytest.raises(ArgumentError, match="between 1 and the 3 servers, got 4"):
        plan.replicas(4)


def test_pytrees_are_named_by_their_paths() -> None:
    params = {"layers": [{"w": np.zeros((3, 2), np.float16)}], "b": np.float32(1)}
    assert tensors_of(params, {"layers/0/w": 0.5}) == (
        Tensor("b", (), "float32"),
        Tensor("layers/0/w", (3, 2), "float16", 0.5),
    )
    with pytest.raises(ArgumentError, match="accesses names 'v'; the tensors are 'b'"):
        tensors_of(params, {"v": 1})


def test_a_plan_has_an_svg_drawing() -> None:
    plan = place([Tensor("a<b", (4096, 4096)), Tensor("b", ())], 2)
    root = ET.fromstring(plan._repr_svg_())
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert titles[0] == "a<b[0:2048]: 33.6 MB"
    assert "b: 4 B" in titles
    ET.fromstring(place([], 1).svg())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: place([], 0), "servers must be a number of servers, 1 or more"),
        (lambda: place([], [1, 1]), r"got \(1, 1\)"),
        (lambda: place([Tensor("w", ()), Tensor("w", ())], 1), "two tensors 'w'"),
        (lambda: place([Tensor("w", (), accesses=-1)], 1), "must not be negative"),
        (lambda: place([], 1, strategy="best"), "'greedy', 'round_robin' or 'rows'"),
        (lambda: replan(place([], 1), []), "replan: servers"),
        (lambda: PlacementPlan.from_json({}), "not a plan"),
        (
            lambda: PlacementPlan.from_json(
                {
                    "servers": [0],
                    "tensors": [["w", [4], "float32", 1]],
                    "pieces": [[0, 0, 2, 0], [0, 3, 4, 0]],
                }
            ),
            "must have each row of each tensor once",
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
