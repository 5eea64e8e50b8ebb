"""What an operation may do besides computing its results.

An effect keeps its node from dead-code elimination. Ordered effects keep the order of
the program: in a compiled program each takes a token from the one before and hands one
on, through calls, loops and branches.
"""

from __future__ import annotations

IO = "io"
ORDERED = "ordered io"
DEBUG = "debug"

TOKEN = "!stablehlo.token"
