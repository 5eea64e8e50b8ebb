"""Results of optax 0.2.8: parameters after six updates, schedules, losses."""

import json
from pathlib import Path
from typing import Any

import numpy as np

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "optax-0.2.8.json").read_text()
)


def _arrays(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value, np.float32) for name, value in tree.items()}


PARAMS = _arrays(DATA["params"])
GRADIENTS = [_arrays(gradients) for gradients in DATA["grads"]]
LOSS_INPUTS = {
    name: np.array(value, None if name in "iw" else np.float32)
    for name, value in DATA["loss_inputs"].items()
}
