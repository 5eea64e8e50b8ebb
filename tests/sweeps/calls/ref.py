"""Functions of `fxflow.ref`: sweeps draw no references, which these take."""

from __future__ import annotations

from tests.sweeps.catalogue import Call

CALLS: list[Call] = []
EXEMPT = {
    f"ref.{name}": "takes or gives a reference: tests/lax/test_references.py"
    for name in (
        "addupdate",
        "empty_ref",
        "free_ref",
        "freeze",
        "get",
        "new_ref",
        "set",
        "swap",
    )
}
