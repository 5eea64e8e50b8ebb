from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.views import (
    Places,
    View,
    assign,
    balanced,
    first_view,
    moved,
    replanned,
    resumed,
    room,
    settled,
    with_holder,
    with_places,
    without,
)

ADDRESSES = ["a:1", "b:1", "c:1"]


def test_a_shard_lies_on_its_server_and_the_next_ones() -> None:
    view = first_view(ADDRESSES, copies=2)
    assert view.holders == ((0, 1), (1, 2), (2, 0))
    assert view.served_by(1) == [1]
    assert view.held_by(0) == [0, 2]
    assert first_view(ADDRESSES[:1], copies=3).holders == ((0,),)


def test_the_next_holder_serves_after_a_loss() -> None:
    view = without(first_view(ADDRESSES, copies=2), 1)
    assert (view.epoch, view.holders) == (2, ((0,), (2,), (2, 0)))
    assert view.served_by(2) == [1, 2]
    back = with_holder(view, 1, 1)
    assert (back.epoch, back.holders[1]) == (3, (1, 2))
    assert with_holder(back, 1, 1) is back


def test_a_shard_waits_for_its_only_holder() -> None:
    view = without(first_view(ADDRESSES), 1)
    assert view.holders == ((0,), (1,), (2,))


def test_voters_are_living_servers_and_workers() -> None:
    view = first_view(ADDRESSES, copies=2)
    assert view.voters == ()
    assert view._replace(servers=(7, 0, 8), workers=(9,)).voters == (7, 8, 9)


def test_more_shards_than_servers() -> None:
    view = first_view(ADDRESSES[:2], shards=5)
    assert view.holders == view.places == ((0,), (1,), (0,), (1,), (0,))
    assert view.members == (0, 1) and room(view) == 3
    # With one shard for each server and no copies, the assignment is fixed.
    assert first_view(ADDRESSES).members == ()
    assert first_view(ADDRESSES, copies=2).members == (0, 1, 2)


def begun(servers: int, copies: int = 1, shards: int = 6) -> View:
    view = first_view([f"{s}:1" for s in range(servers)], copies, shards)
    return view._replace(servers=tuple(range(10, 10 + servers)))


def test_a_joining_server_receives_shards_and_then_holds_them() -> None:
    view = replanned(begun(2), live={0, 1}, joining=["new:1", "0:1", "new:1"])
    assert view.addresses == ("0:1", "1:1", "new:1")
    assert (view.members, view.servers) == ((0, 1, 2), (10, 11, 0))
    # A holder keeps its shard until the new server has it.
    assert settled(view).holders == begun(2).holders
    coming = [shard for shard, planned in enumerate(view.places) if planned == (2,)]
    assert len(coming) == 2
    view = with_holder(view._replace(servers=(10, 11, 12)), coming[0], 2)
    assert view.holders[coming[0]] == (2,)
    # It does not become a holder of a shard that it is not to hold.
    assert with_holder(view, 5, 2) is view


def test_the_old_holders_stay_until_the_last_new_one_is_ready() -> None:
    view = begun(4, 2, 1)._replace(holders=((0, 1),), places=((2, 3),))
    view = with_holder(view, 0, 3)
    assert view.holders == ((0, 1, 3),)
    view = with_holder(view, 0, 2)
    assert view.holders == ((2, 3),)
    # The planned primary serves as soon as it has the shard.
    view = with_holder(begun(4, 2, 1)._replace(places=((2, 3),)), 0, 2)
    assert view.holders == ((2, 0, 1),)
    # Any of the servers that died may return first.
    dead = begun(3, 2, 1)._replace(holders=((1, 2),), places=((2, 1),))
    assert settled(dead).holders == ((2, 1),)
    assert settled(dead._replace(servers=(10, 0, 0))).holders == ((1, 2),)


def test_a_leaving_server_gives_up_its_shards_and_stops_voting() -> None:
    view = replanned(begun(2), live={0, 1}, leaving={0})
    assert view.members == (1,) and view.places == ((1,),) * 6
    assert view.servers == (10, 11)  # it still holds shards
    for shard in range(6):
        view = with_holder(view, shard, 1)
    view = replanned(view, live={0, 1}, leaving={0})
    assert (view.servers, view.held_by(0), view.peers) == ((0, 11), [], (1,))
    # Another process may join in its place.
    assert replanned(view, live={0, 1}).members == (0, 1)


def test_the_last_server_does_not_leave() -> None:
    view = begun(2)
    assert replanned(view, live={0, 1}, leaving={0, 1}) == view
    # The other server is absent, so it cannot take over the shards.
    assert replanned(view, live={0}, leaving={0}) == view


def test_a_lost_server_is_removed_if_others_hold_its_shards() -> None:
    lost = without(begun(3, 2)._replace(servers=(10, 0, 12)), 1)
    view = replanned(lost, live={0, 2}, lost={1})
    assert view.members == (0, 2)
    assert {frozenset(planned) for planned in view.places} == {frozenset((0, 2))}
    # It returns.
    assert replanned(view, live={0, 1, 2}).members == (0, 1, 2)
    # Without copies, its shards wait for it.
    alone = begun(3)._replace(servers=(10, 0, 12))
    assert replanned(alone, live={0, 2}, lost={1}) == alone


def test_there_is_room_for_as_many_servers_as_shards() -> None:
    view = replanned(begun(2, 1, 3), live={0, 1}, joining=["a:1", "b:1"])
    assert view.addresses == ("0:1", "1:1", "a:1") and room(view) == 0
    fixed = first_view(ADDRESSES)
    assert replanned(fixed, live={0, 1, 2}, joining=["a:1"]) is fixed


events = st.tuples(
    st.sampled_from(["join", "leave", "die", "come", "give up", "catch up", "move"]),
    st.integers(0, 9),
    st.integers(0, 9),
)


class Cluster:
    """A view, and the live servers."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.live = {*view.members}
        self.leaving: set[int] = set()
        self.lost: set[int] = set()
        self.joining: list[str] = []

    def happens(self, what: str, a: int, b: int) -> None:
        count = len(self.view.addresses)
        server, shard = a % count, b % len(self.view.holders)
        if what == "join":
            self.joining = [f"{count}:1"]
        elif what == "leave":
            self.leaving |= {server} & self.live
        elif what == "die" and self.live != {server}:
            self.live -= {server}
            self.leaving -= {server}
        elif what == "come":
            self.live |= {server}
        elif what == "give up":
            self.lost = set(range(count)) - self.live
        elif what == "catch up":
            planned = self.view.places[shard]
            new = planned[a % len(planned)]
            # A live holder sends the shard.
            if new in self.live and {*self.view.holders[shard]} & self.live:
                self.view = with_holder(self.view, shard, new)
        elif what == "move" and server in self.view.members:
            self.view = with_places(self.view, moved(self.view, shard, server))
        self.decide()

    def decide(self) -> None:
        """Decides on the next view as a proposing server does."""
        after = self.view
        for server in set(range(len(after.addresses))) - self.live:
            after = without(after, server)
        count = len(after.addresses)
        servers = (10 + s if s in self.live else 0 for s in range(count))
        after = replanned(
            after._replace(servers=tuple(servers)),
            live=self.live,
            leaving=self.leaving,
            lost=self.lost - self.live,
            joining=self.joining,
        )
        self.view = settled(after)


@settings(max_examples=80)
@given(st.integers(1, 3), st.integers(1, 2), st.lists(events, max_size=30))
def test_a_new_holder_gets_a_shard_from_a_holder_in_any_history(
    servers: int, copies: int, happened: list[tuple[str, int, int]]
) -> None:
    cluster = Cluster(begun(servers, min(copies, servers), 4))
    if not cluster.view.members:
        return  # fixed
    for what, a, b in happened:
        before = cluster.view
        cluster.happens(what, a, b)
        view, live = cluster.view, cluster.live
        assert view.addresses[: len(before.addresses)] == before.addresses
        assert view.members
        for shard, held in enumerate(view.holders):
            had = {*before.holders[shard]}
            new = {*before.places[shard]} if what == "catch up" else set()
            assert held and {*held} <= had | (new if shard == b % 4 else set())
            # While a holder is alive, only live servers hold the shard.
            assert not had & live or {*held} <= live
            assert {*view.places[shard]} <= {*view.members}
            if set(held) == set(view.places[shard]):
                assert held == view.places[shard] or not {*held} & live


def test_a_shard_moves_to_a_server_or_a_copy_serves_it() -> None:
    view = begun(3, 2, 6)
    assert view.places[1] == (1, 2)
    assert moved(view, 1, 0)[1] == (0, 2)
    assert moved(view, 1, 2)[1] == (2, 1)
    assert moved(view, 1, 1) == view.places
    # A copy that is complete serves the shard at once, another server after it is.
    assert settled(with_places(view, moved(view, 1, 2))).holders[1] == (2, 1)
    waits = settled(with_places(view, moved(view, 1, 0)))
    assert waits.holders[1] == (1, 2)
    assert with_holder(waits, 1, 0).holders[1] == (0, 2)


def test_shards_are_divided_by_load() -> None:
    view = begun(2, 1, 4)
    assert view.places == ((0,), (1,), (0,), (1,))
    places = balanced(view, {0: 0.5, 1: 0.1, 2: 0.5, 3: 0.1})
    assert sorted(places[s][0] for s in (0, 2)) == [0, 1]
    assert sorted(places[s][0] for s in (1, 3)) == [0, 1]
    assert balanced(with_places(view, places), {0: 0.5, 1: 0.1, 2: 0.5}) == places
    # A shard without load does not count as the mean of the others.
    assert balanced(view, {1: 0.3, 3: 0.3})[1] != balanced(view, {1: 0.3, 3: 0.3})[3]
    with pytest.raises(ValueError, match="not measured any load"):
        balanced(view, {})


@pytest.mark.parametrize(
    "places",
    [
        ((0,), (1,), (0,)),
        ((0,), (1,), (0,), (2,)),
        ((0,), (1,), (0,), (1, 0)),
        ((0,), (1,), (0,), ()),
    ],
)
def test_places_that_do_not_fit_are_refused(places: Places) -> None:
    with pytest.raises(ValueError, match=r"4 shards with 1 copies on servers \[0, 1\]"):
        with_places(begun(2, 1, 4), places)
    with pytest.raises(ValueError, match="cannot have the places"):
        with_places(begun(2, 2, 1), ((0, 0),))


def test_fixed_shards_have_no_other_places() -> None:
    view = first_view(ADDRESSES)
    for call in (
        lambda: moved(view, 0, 1),
        lambda: balanced(view, {0: 1.0}),
        lambda: with_places(view, view.places),
    ):
        with pytest.raises(ValueError, match=r"3 shards is fixed .* --ps-shards"):
            call()


def test_a_restarted_server_continues_from_its_last_view() -> None:
    kept = begun(3, 2)._replace(epoch=8, run=5, workers=(1,))
    after = kept._replace(places=((2, 0),) * 6)
    first = first_view([f"{s}:1" for s in range(3)], 2, 6)
    assert resumed(first, after) == after
    # All servers have new addresses; or only the first addresses are given.
    other = resumed(first_view(ADDRESSES, 2, 6), after)
    assert other == after._replace(addresses=tuple(ADDRESSES))
    assert resumed(first_view(["0:1", "1:1"], 2, 6), after) == after
    # The number of copies has changed.
    assert {len(p) for p in resumed(first_view(ADDRESSES, 3, 6), after).places} == {3}
    with pytest.raises(ValueError, match="to a run with 6 shards, not 3"):
        resumed(first_view(ADDRESSES, 2), after)
    with pytest.raises(ValueError, match="to a run with 3 servers, 0:1, 1:1, 2:1"):
        resumed(first_view(["0:2", "1:2"], 2, 6), after)


def test_json() -> None:
    view = first_view(ADDRESSES, copies=2)._replace(servers=(4, 0, 5), workers=(6,))
    assert View.from_json(view.to_json()) == view
    with pytest.raises(ValueError, match="not a view"):
        View.from_json({"epoch": 1})


# -- assignment ------------------------------------------------------------------------

numbers = st.sets(st.integers(0, 9), min_size=1, max_size=6)
steps = st.lists(numbers, min_size=1, max_size=4)
sizes = st.lists(st.integers(0, 1000), min_size=1, max_size=20)


def assigned(shards: int, servers: int, copies: int) -> Places:
    places = range(min(copies, servers))
    return tuple(tuple((s + i) % servers for i in places) for s in range(shards))


def changed(before: Places, after: Places) -> list[tuple[int, int]]:
    """Returns shard and target of each move."""
    pairs = enumerate(zip(before, after, strict=True))
    return [(shard, s) for shard, (old, new) in pairs for s in new if s not in old]


@settings(max_examples=60)
@given(st.integers(1, 24), st.integers(1, 5), st.integers(1, 4), steps)
def test_each_shard_lies_on_distinct_servers_evenly(
    shards: int, servers: int, copies: int, members: list[set[int]]
) -> None:
    places = assigned(shards, servers, copies)
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
        for server, received in Counter(s for _, s in changed(before, places)).items():
            assert received <= max(0, fair - held[server]) + 1


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 5))
def test_only_the_joining_server_receives_shards(shards: int, servers: int) -> None:
    before = assigned(shards, servers, 1)
    after = assign(before, range(servers + 1))
    moves = changed(before, after)
    assert {server for _, server in moves} <= {servers}
    assert len(moves) == shards // (servers + 1)
    # When it leaves again, only its shards move.
    again = assign(after, range(servers))
    assert {shard for shard, _ in changed(after, again)} == {
        shard for shard, _ in moves
    }


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
