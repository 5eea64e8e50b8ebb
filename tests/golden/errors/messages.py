"""Our messages for the mistakes, as they are stored: without paths and lines."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, optim, random, tree
from tests.golden.errors import mistakes, more_mistakes, own_mistakes

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
    for name in own_mistakes.OWN:
        error = own_mistakes.outcome(name)
        found[name] = (said(error), mistakes.printed(error))
    return found


def said(error: Exception | None) -> str:
    """Returns the class and text of an error, without what differs between runs."""
    if error is None:
        return "nothing is raised"
    text = str(error)
    for module in (mistakes, more_mistakes, own_mistakes):
        name = Path(module.__file__).name
        text = re.sub(re.escape(module.__file__) + r":\d+", f"{name}:#", text)
    text = text.replace(str(own_mistakes.folder()), "folder")
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
