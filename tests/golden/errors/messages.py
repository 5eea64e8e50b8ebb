"""Our messages for the mistakes, as they are stored: without paths and lines."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim, random, tree
from tests.golden.errors import mistakes

HERE = Path(__file__).parent
STORED = HERE / "messages.txt"


def namespace() -> SimpleNamespace:
    """What the mistakes are made with."""
    return SimpleNamespace(
        ap=fxflow, np=fnp, lax=lax, random=random, tree=tree, optim=optim
    )


def messages() -> dict[str, tuple[str, int]]:
    """Returns for each mistake the class and text, and the lines that are printed."""
    m = namespace()
    found = {}
    for name in mistakes.MISTAKES:
        error = mistakes.outcome(name, m)
        found[name] = (said(error), mistakes.printed(error))
    return found


def said(error: Exception | None) -> str:
    """Returns the class and text of an error, without what differs between runs."""
    if error is None:
        return "nothing is raised"
    text = re.sub(re.escape(mistakes.__file__) + r":\d+", "mistakes.py:#", str(error))
    # Which platforms there are, and how many devices, is the machine's.
    text = text.partition("\nPlatforms installed here")[0]
    text = re.sub(r"there are \d+\.", "there are #.", text)
    text = re.sub(r"has \d+ devices \(.*?\)", "has # devices", text)
    return f"{type(error).__name__}: {text}"


def as_file(found: dict[str, tuple[str, int]]) -> str:
    """Returns what is stored."""
    return "".join(f"{name}\n    {text}\n" for name, (text, _) in found.items())


if __name__ == "__main__":
    STORED.write_text(as_file(messages()), encoding="utf-8")
