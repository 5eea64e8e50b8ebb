"""One of two processes that add up arrays: reads names of measurements, prints seconds.

See `cases/two_processes.py`; requests and answers are JSON, one a line.
"""

import json
import os
import sys
from collections.abc import Callable

from cases.two_processes import builder, joined


def main() -> None:
    library, rank, address = sys.argv[1:]
    # Answers go through a private copy of stdout: gloo prints its connections.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    side = joined(library, int(rank), address)
    prepared: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in prepared:
            prepared[name] = builder(name)(side)
        answers.write(json.dumps(prepared[name]()) + "\n")


if __name__ == "__main__":
    main()
