"""Sphinx configuration: `python -m sphinx docs docs/_build` with the `docs` extra."""

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
autosummary_generate = True
autodoc_typehints = "description"
exclude_patterns = ["_build"]
html_theme = "furo"
