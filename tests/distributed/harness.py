"""Runs a coordinator and its processes in threads of one process."""

import contextlib
import threading
from collections.abc import Iterator

from fxflow.distributed.coordination import Coordination
from fxflow.distributed.coordinator import Coordinator

from .conftest import listening


@contextlib.contextmanager
def cluster(
    count: int, heartbeat: float = 100.0, **options: object
) -> Iterator[tuple[Coordinator, list[Coordination]]]:
    """Yields a coordinator and the connections of its processes."""
    server = Coordinator("127.0.0.1:0", count, heartbeat_timeout=heartbeat)
    found: dict[int, Coordination] = {}

    def join(number: int) -> None:
        found[number] = Coordination.join(
            f"127.0.0.1:{server.port}",
            number,
            count,
            timeout=10,
            heartbeat_timeout=heartbeat,
            **options,
        )

    threads = [threading.Thread(target=join, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        yield server, [found[n] for n in range(count)]
    finally:
        for one in found.values():
            one.close()
        server.stop()
        assert not listening(server.port)
