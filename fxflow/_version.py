"""The version, alone in a file so that packaging need not import the library."""

__version__ = "0.1.0"
