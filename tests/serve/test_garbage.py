"""What the collector of garbage is told, in a process of its own."""

import subprocess
import sys

CODE = """
import gc, weakref
from fxflow.serve.garbage import settle

class Loaded:
    pass

def cyclic():
    one = Loaded()
    one.itself = one
    return one

loaded = cyclic()
settle()
assert gc.get_freeze_count() > 10_000 and gc.get_threshold()[0] == 10_000
assert not any(kept is loaded for kept in gc.get_objects())
seen = weakref.ref(loaded)
del loaded
gc.collect()
assert seen() is not None  # it is not looked at
settle()
assert seen() is None  # nor kept when something else was loaded
later = weakref.ref(cyclic())
gc.collect()
assert later() is None
"""


def test_what_is_loaded_is_not_looked_at_again() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
