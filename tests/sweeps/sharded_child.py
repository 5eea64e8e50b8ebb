"""Runs calls with sharded operands and says, line by line, what it is at.

    python -m tests.sweeps.sharded_child    # cases as a list in JSON, from stdin

A line is printed before each case (`{"at": ["numpy.sort", "last"]}`), and one after it
(`{"done": ["numpy.sort", "last"], "found": ""}`): a crash is then known by its case.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from tests.sweeps.catalogue import catalogue
from tests.sweeps.layouts import LAYOUTS, difference


def say(**line: Any) -> None:
    """Prints a line that the parent reads."""
    print(json.dumps(line), flush=True)


def main() -> None:
    """Runs the cases."""
    warnings.simplefilter("ignore")
    calls = {str(call): call for call in catalogue()}
    expected: dict[str, Any] = {}
    wanted = json.load(sys.stdin)
    for name, layout in wanted["cases"]:
        call = calls[name]
        arrays = call.draw(seed=wanted["seed"])
        if name not in expected:
            expected[name] = call.run(*arrays)
        say(at=[name, layout])
        try:
            got = LAYOUTS[layout](call, arrays)()
            found = difference(got, expected[name], call)
        except Exception as error:
            found = f"{type(error).__name__}: {str(error)[:400]}"
        say(done=[name, layout], found=found)


if __name__ == "__main__":
    main()
