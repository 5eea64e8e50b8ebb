"""Running: from a graph to a program, and operations at once.

To be read in this order:

- `lowering`: a graph as StableHLO;
- `execute`: a compiled program, and what calling it does;
- `eager`: plans, which run one operation or one library function at once;
- `bodies`: graphs of functions that were traced before.
"""
