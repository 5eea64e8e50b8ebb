"""Assigns whole shards to servers that join and leave."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.assignment import Places, assign

numbers = st.sets(st.integers(0, 9), min_size=1, max_size=6)
steps = st.lists(numbers, min_size=1, max_size=4)
sizes = st.lists(st.integers(0, 1000), min_size=1, max_size=20)


def begun(shards: int, servers: int, copies: int) -> Places:
    places = range(min(copies, servers))
    return tuple(tuple((s + i) % servers for i in places) for s in range(shards))


def moved(before: Places, after: Places) -> list[tuple[int, int]]:
    """Returns shard and target of each move."""
    pairs = enumerate(zip(before, after, strict=True))
    return [(shard, s) for shard, (old, new) in pairs for s in new if s not in old]


@settings(max_examples=60)
@given(st.integers(1, 24), st.integers(1, 5), st.integers(1, 4), steps)
def test_each_shard_lies_on_distinct_servers_evenly(
    shards: int, servers: int, copies: int, members: list[set[int]]
) -> None:
    places = begun(shards, servers, copies)
    if shards % servers == 0:
        assert assign(places, range(servers), copies) == places
    for alive in members:
        before, places = places, assign(places, alive, copies)
        for planned in places:
            assert len(set(planned)) == len(planned) == min(copies, len(alive))
            assert set(planned) <= alive
        counts = Counter(dict.fromkeys(alive, 0))
        counts.update(server for planned in places for server in planned)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert assign(places, alive, copies) == places
        # A server that stays receives no more than it lacks for a fair share.
        held = Counter(server for planned in before for server in planned)
        fair = -(-shards * min(copies, len(alive)) // len(alive))
        for server, received in Counter(s for _, s in moved(before, places)).items():
            assert received <= max(0, fair - held[server]) + 1


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 5))
def test_only_the_joining_server_receives_shards(shards: int, servers: int) -> None:
    before = begun(shards, servers, 1)
    after = assign(before, range(servers + 1))
    moves = moved(before, after)
    assert {server for _, server in moves} <= {servers}
    assert len(moves) == shards // (servers + 1)
    # When it leaves again, only its shards move.
    again = assign(after, range(servers))
    assert {shard for shard, _ in moved(after, again)} == {shard for shard, _ in moves}


@settings(max_examples=60)
@given(sizes, numbers, numbers, st.integers(1, 3))
def test_bytes_are_even_as_far_as_one_shard_allows(
    weights: list[int], first: set[int], then: set[int], copies: int
) -> None:
    places = assign([()] * len(weights), first, copies, weights)
    places = assign(places, then, copies, weights)
    known = [w for w in weights if w]
    unknown = sum(known) / len(known) if known else 1.0
    sized = [w or unknown for w in weights]
    load = dict.fromkeys(then, 0.0)
    for planned, weight in zip(places, sized, strict=True):
        for server in planned:
            load[server] += weight
    slack = 0.02 * sum(sized) / len(then)
    assert max(load.values()) - min(load.values()) <= max(sized) + slack
    assert assign(places, then, copies, weights) == places


def test_the_largest_shard_moves_first_and_serving_is_balanced() -> None:
    assert assign([(0,)] * 4, [0, 1], 1, [8, 1, 1, 6]) == ((1,), (0,), (0,), (0,))
    # Both servers hold all shards; each serves half of them.
    served = [planned[0] for planned in assign([(0,)] * 4, [0, 1], 2)]
    assert sorted(served) == [0, 0, 1, 1]
    # Shards without a server are assigned, too.
    assert assign([(), (5,)], [3]) == ((3,), (3,))
