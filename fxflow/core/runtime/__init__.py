"""Running: from a graph to a program, and operations at once.

To be read in this order:

- `lowering`: a graph as StableHLO;
- `execute`: a compiled program, and what calling it does;
- `eager`: plans, which run one operation at once;
- `library`: functions of arrays that are one plan when eager;
- `bodies`: graphs of functions that were traced before.
"""
