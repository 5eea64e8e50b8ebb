"""Launches tasks that do nothing, and a program that observes them."""

#: Runs `fxflow launch` with tasks that do nothing.
LAUNCH = """
import sys
from fxflow.distributed import tasks
tasks.MODULE = "idle_task"
from fxflow.distributed.launch import main
sys.exit(main())
"""

#: A task. It appends its process id to a file, and fails if a file says so.
IDLE_TASK = """
import argparse, os, signal, sys
parser = argparse.ArgumentParser()
for name in ("job", "index", "address", "listen"):
    parser.add_argument("--" + name)
options = parser.parse_args()
assert options.job == "worker"
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: sys.exit(0))
if os.path.exists("fail-" + options.index):
    sys.exit(1)
keys = os.environ.get("FXFLOW_PS_KEYS", "")
secret = "none" if not keys else "client" if keys.endswith(",") else "server"
devices = os.environ.get("FXFLOW_NUM_CPU_DEVICES")
print("serves", options.address, options.listen, "keys", secret, devices, flush=True)
# After the line above: a test may kill the process once its id is there.
with open("pids-" + options.index, "a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""

#: The beginning of a controller.
CONTROLLER = """
import os, signal, sys, time
addresses = os.environ["FXFLOW_DATAFLOW_TASKS"].split(",")
keys = os.environ.get("FXFLOW_PS_KEYS", "")
secret = "none" if not keys else "client" if keys.endswith(",") else "server"
print("addresses", *addresses, "keys", secret, flush=True)

def pids(task, count):
    '''Waits until a task has been started `count` times.'''
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if os.path.exists(f"pids-{task}"):
            found = open(f"pids-{task}").read().split()
            if len(found) >= count:
                return [int(pid) for pid in found]
        time.sleep(0.01)
    raise SystemExit(f"task {task} was not started {count} times")

"""
