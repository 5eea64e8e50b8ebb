"""Which of SciPy's names there are: the guide lists the others."""

from __future__ import annotations

import re
from pathlib import Path

import scipy.stats

from fxflow.scipy import stats

GUIDE = Path(__file__).parents[3] / "docs/guides/other-libraries.md"
# Namespaces that SciPy has deprecated, and its test runner.
OLD = {"biasedurn", "distributions", "kde", "morestats", "mstats_basic"}
OLD |= {"mstats_extras", "mvn", "stats", "test"}


def listed(section: str) -> set[str]:
    """The names in the first column of the table behind a sentence of the guide."""
    text = GUIDE.read_text(encoding="utf-8").split(section, 1)[1]
    table = text.split("\n\n")[1]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    return {n for row in rows for n in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_guide_lists_what_is_left_out() -> None:
    theirs = {name for name in dir(scipy.stats) if not name.startswith("_")}
    missing = {n for n in theirs - OLD if not hasattr(stats, n)}
    assert listed("lacks these names of `scipy.stats`") == missing


def test_the_guide_lists_what_qmc_lacks() -> None:
    missing = set(scipy.stats.qmc.__all__) - set(stats.qmc.__all__)
    missing |= set(scipy.stats.contingency.__all__) - set(stats.contingency.__all__)
    assert listed("and of its modules `qmc` and `contingency`") == missing
