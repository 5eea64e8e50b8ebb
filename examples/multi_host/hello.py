"""Connects two processes and prints their devices.

fxflow launch -n 2 --devices-per-process 2 examples/multi_host/hello.py
"""

import fxflow
from fxflow.distributed import multihost

fxflow.distributed.initialize()

print(
    f"process {fxflow.process_index()} of {fxflow.process_count()}: "
    f"{fxflow.local_device_count()} of {fxflow.device_count()} devices"
)
places = multihost.process_allgather(fxflow.process_index())
multihost.sync_global_devices("all have said so")
if fxflow.process_index() == 0:
    print(f"processes {places.tolist()} were here")
