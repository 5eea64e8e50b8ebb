"""A process with several CPU devices: reads names of measurements, prints seconds.

See `cases/many_devices.py`; requests and answers are JSON, one a line.
"""

import json
import sys
from collections.abc import Callable

from cases.library import load
from cases.many_devices import builder


def main() -> None:
    library = load(sys.argv[1])
    prepared: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in prepared:
            prepared[name] = builder(name)(library)
        print(json.dumps(prepared[name]()), flush=True)


if __name__ == "__main__":
    main()
