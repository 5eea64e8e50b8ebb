"""Sphinx configuration: `python -m sphinx docs docs/_build` with the `docs` extra."""

import re
from typing import Any

import fxflow

project = "fxflow"
author = copyright = "The fxflow authors"
version = release = fxflow.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 2
autosummary_generate = True
autosummary_ignore_module_all = False  # the packages re-export what they offer
smartquotes = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Special cases"]
# A class is described in each package that offers it, so its name has several targets.
suppress_warnings = ["ref.python"]
html_theme = "furo"


def as_rst(line: str) -> str:
    """Returns a line of a docstring as reStructuredText.

    Docstrings are written to be read in a terminal: `code` is in single quotes, stars
    and bars are themselves.
    """
    code = r"(``.+?``|`[^`]+`)"
    parts = re.split(code, line)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part.strip('`')}``"
            if parts[i + 1][:1].isalnum():  # `Array`s
                parts[i] += "\\ "
        else:
            parts[i] = re.sub(r"([*|])", r"\\\1", part)
    return "".join(parts)


def convert(app: Any, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """Converts the docstring of an object, but for its examples."""
    if str(getattr(obj, "__module__", "")).partition(".")[0] == "numpy":
        lines[:] = [*lines[:1], "", "This is NumPy's own."]
        return
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[i] = as_rst(line)


def setup(app: Any) -> None:
    """Converts docstrings before napoleon reads their sections."""
    app.connect("autodoc-process-docstring", convert, priority=400)
