import threading
from pathlib import Path

import pytest

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server.server.heartbeats import Heartbeats

pytest.importorskip("zmq")


def test_others_receive_heartbeats_until_it_is_closed(tmp_path: Path) -> None:
    threads = threading.active_count()
    with Hub() as hub:
        listeners = [hub.listen(f"ipc://{tmp_path}/{i}") for i in range(2)]
        addresses = [listener.address for listener in listeners]
        beats = Heartbeats(None, 0.01, lambda: Message("ping", epoch=7))
        # One after the other: servers that are added later get heartbeats too.
        for address, listener in zip(addresses, listeners, strict=True):
            beats.set_addresses([address])
            heard = []
            while len(heard) < 3:
                hub.wait(1)
                heard += listener.receive()
            assert {message.epoch for _, message in heard} == {7}
        beats.close()
        assert threading.active_count() == threads
