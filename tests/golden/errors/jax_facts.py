"""Writes `jax.tsv`: what class of error JAX raises for each mistake, and how long.

Run it in an environment that has JAX (and optax, for its optimizer):

    PYTHONPATH=. XLA_FLAGS=--xla_force_host_platform_device_count=2 \\
        JAX_PLATFORMS=cpu python tests/golden/errors/jax_facts.py
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from types import SimpleNamespace

from tests.golden.errors import more_mistakes  # noqa: F401 (adds to MISTAKES)
from tests.golden.errors.mistakes import MISTAKES, outcome, printed

HERE = Path(__file__).parent


def main() -> None:
    warnings.simplefilter("ignore")
    jax = importlib.import_module("jax")
    try:
        optim = importlib.import_module("optax")
    except ImportError:
        optim = None
    m = SimpleNamespace(
        ap=jax,
        np=importlib.import_module("jax.numpy"),
        lax=jax.lax,
        random=jax.random,
        tree=jax.tree,
        optim=optim,
    )
    rows = [f"# JAX {jax.__version__}: mistake, class, lines of text, of all printed"]
    for name in MISTAKES:
        error = outcome(name, m)
        if error is None or (optim is None and name.startswith("optimizer_")):
            rows.append(f"{name}\tnone\t0\t0")
            continue
        lines = len(str(error).splitlines())
        rows.append(f"{name}\t{type(error).__name__}\t{lines}\t{printed(error)}")
    (HERE / "jax.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
