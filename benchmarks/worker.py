"""A process that holds one library and measures what `run.py` asks for.

Requests and answers are JSON, one object a line: `about`, then for each case `prepare`
(build and warm up), `measure` as often as there are rounds, and `drop`.
"""

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def about(library: str, cases: dict[str, Any]) -> dict[str, Any]:
    from cases.library import version

    described = {
        name: {
            "name": name,
            "unit": case.unit,
            "at_most": case.at_most,
            "aim": case.aim,
            "most_rounds": case.most_rounds,
        }
        for name, case in cases.items()
    }
    return {"version": version(library), "cases": described}


def use_gpu() -> None:
    """Has PyTorch use a GPU, and its short floats, as XLA does where there is one."""
    import torch

    if torch.cuda.is_available():
        torch.set_default_device("cuda")
        torch.set_float32_matmul_precision("high")


def main() -> None:
    library = sys.argv[1]
    # Answers go through a private copy of stdout: a library that prints does no harm.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    from cases import collect
    from cases.library import Timed, load, peaks

    if library == "torch":
        use_gpu()
    cases = collect(library)
    prepared: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        name = request.get("case")
        try:
            match request["action"]:
                case "about":
                    answer = about(library, cases)
                case "prepare":
                    prepared[name] = cases[name].prepare()
                    prepared[name]()
                    # What it does at least, where that is known.
                    found = prepared[name]
                    if isinstance(found, Timed):
                        answer = {"flops": found.flops, "nbytes": found.nbytes}
                case "peaks":
                    answer = peaks(load(library))
                case "measure":
                    gc.collect()
                    answer = {"value": prepared[name]()}
                case "drop":
                    prepared.pop(name, None)
                    gc.collect()
        except Exception:
            answer = {"error": traceback.format_exc(limit=-6)}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
