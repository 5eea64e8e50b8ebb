"""The messages of common mistakes are unchanged, and no worse than those of JAX.

`messages.txt` holds our texts: `python -m tests.golden.errors.messages` writes them
anew, and the difference is part of the review. `jax.tsv` holds facts about JAX's, and
`pytorch.tsv` what PyTorch says to the mistakes that exist there.
"""

from __future__ import annotations

import difflib
import re

import pytest

from fxflow.core.source import is_internal
from fxflow.errors import FxflowError
from tests.golden.errors import messages, mistakes, own_mistakes

FACTS = {
    name: (kind, int(lines), int(printed))
    for name, kind, lines, printed in (
        line.split("\t")
        for line in (messages.HERE / "jax.tsv").read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
}
# Words of the inside. `lambda_` and `PyTreeDef` are what graphs and structures print.
INSIDE = re.compile(
    r"\bAval\b|\w*Tracer\b|TracedArray|lambda_|PyTreeDef|ShapedArray|<locals>|"
    r"NoneType|0x[0-9a-f]{6}|has no attribute '(aval|ndim|shape)'"
)
#: What is not an error here, and why.
ALLOWED = {
    "integer_too_large": "JAX wraps around",
    "foreign_array": "JAX takes what shares its memory",
    "optimizer_state": "optax may be absent",
    "optimizer_arguments": "optax takes the parameters for a state",
    "unknown_platform": "`devices` stands below what shortens tracebacks",
    "imported_name": "Python 3.13 underlines it; the facts about JAX are of 3.11",
}
PYTORCH = {
    name: text
    for name, _, text in (
        line.split("\t")
        for line in (messages.HERE / "pytorch.tsv").read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
}
#: Numbers in PyTorch's text that ours need not have, and why.
OTHER_NUMBERS = {
    "tile_negative": "of the result, -3 elements: the user wrote -1",
    "hstack_two_arguments": "how many arguments were given",
    "custom_vjp_cotangent_shape": "the gradient there has two elements",
    "cho_solve_of_a_matrix": "another function, which takes the factor alone",
}


@pytest.fixture(scope="module")
def found():
    return messages.messages()


def test_texts_are_what_they_were(found):
    stored, now = messages.STORED.read_text("utf-8"), messages.as_file(found)
    lines = difflib.unified_diff(
        stored.splitlines(), now.splitlines(), "stored", "now", lineterm="", n=1
    )
    assert stored == now, "\n".join(lines)


@pytest.mark.parametrize("name", [*mistakes.MISTAKES, *own_mistakes.OWN])
def test_messages_name_what_was_given_and_hide_our_frames(name):
    if name in own_mistakes.OWN:
        error = own_mistakes.outcome(name)
    else:
        error = mistakes.outcome(name, messages.namespace())
    assert error is not None
    text = str(error)
    # A class of ours, or a standard one where the rule is Python's own.
    plain = (TypeError, ValueError, NameError, AttributeError, OverflowError)
    plain += (ImportError, KeyError, FileNotFoundError)
    assert isinstance(error, FxflowError) or type(error) in plain
    assert not INSIDE.search(text), text
    # What was given: a type, a name or value in quotes, a number, a Python type.
    given = r"\w+\[[\d,]*\]|'.+'|\d|of type \w|\w+\.py:|"
    given += r"None|\b(list|dict|object|while_loop)\b"
    assert re.search(given, text), text
    # `devices` stands below what shortens tracebacks.
    entry = error.__traceback__ if name != "unknown_platform" else None
    while entry is not None:
        assert not is_internal(entry.tb_frame.f_code.co_filename)
        entry = entry.tb_next


def test_no_more_is_printed_than_by_jax(found):
    assert set(FACTS) == set(mistakes.MISTAKES)
    longer = {
        name: (printed, FACTS[name][2])
        for name, (_, printed) in found.items()
        if name in FACTS and name not in ALLOWED and printed > FACTS[name][2]
    }
    assert longer == {}


def test_jax_refuses_all_of_them_too():
    assert {n for n, (kind, *_) in FACTS.items() if kind == "none"} <= set(ALLOWED)
    assert len(FACTS) >= 60


def test_messages_hold_the_numbers_that_pytorch_names(found):
    # Lengths, sizes and places above 1: fewer of them would be less clear.
    assert set(PYTORCH) <= set(found) and len(PYTORCH) >= 110
    lacking = {}
    for name, text in PYTORCH.items():
        theirs = {n for n in re.findall(r"(?<![\w.])\d+", text) if int(n) > 1}
        missing = theirs - set(re.findall(r"\d+", found[name][0]))
        if missing and name not in OTHER_NUMBERS:
            lacking[name] = (sorted(missing), text)
    assert lacking == {}
