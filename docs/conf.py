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
autosummary_ignore_module_all = False  # the packages re-export what they offer
autodoc_typehints = "description"
exclude_patterns = ["_build"]
html_theme = "furo"
