import pytest

from fxflow.distributed.parameter_server.views import (
    View,
    first_view,
    with_holder,
    without,
)

ADDRESSES = ["a:1", "b:1", "c:1"]


def test_shards_lie_on_their_servers_and_the_next() -> None:
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


def test_voters() -> None:
    view = first_view(ADDRESSES, copies=2)
    assert view.voters == ()
    assert view._replace(servers=(7, 0, 8), workers=(9,)).voters == (7, 8, 9)


def test_json() -> None:
    view = first_view(ADDRESSES, copies=2)._replace(servers=(4, 0, 5), workers=(6,))
    assert View.from_json(view.to_json()) == view
    with pytest.raises(ValueError, match="not a view"):
        View.from_json({"epoch": 1})
