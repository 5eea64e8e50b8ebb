"""Runs the examples of a documentation page."""

import doctest
import re

from fxflow.core import source


class Exact(doctest.OutputChecker):
    """Compares all but trailing white space: a program's text ends in a newline.

    A page shows `example.py` where an error names its file, and 16 GB where one states
    the memory of the machine. It may break the lines of a message anywhere.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        got = re.sub(r"<doctest [^>]*>", "example.py", got)
        got = re.sub(r"[\d,]+(?= that this machine has)", "16,000,000,000", got)
        if got.startswith("fxflow.errors."):
            want, got = " ".join(want.split()), " ".join(got.split())
        return want.rstrip() == got.rstrip()


def failures(markdown: str, name: str) -> str:
    """Runs the examples of a page in one namespace; returns the report of failures.

    An error message that an example shows is compared whole. A process explains weak
    types in its first message only: here, in the first of each page.
    """
    source._weak_explained.clear()
    text = re.sub(r"^```.*$", "", markdown, flags=re.M)  # a fence is not output
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    report: list[str] = []
    doctest.DocTestRunner(Exact()).run(test, out=report.append)
    return "".join(report)
