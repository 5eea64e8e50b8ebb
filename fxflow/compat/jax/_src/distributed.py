"""`jax._src.distributed`: who this process is among several."""

from fxflow.compat.jax._mirror import listen
from fxflow.devices import clients


class State:
    """What orbax asks.

    Attributes:
      client: None: fxflow's processes meet in a way of their own.
      service: likewise.
    """

    client = None
    service = None

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return clients.process_index()

    @property
    def num_processes(self) -> int:
        """The number of them."""
        return clients.process_count()


global_state = State()

listen(globals())
