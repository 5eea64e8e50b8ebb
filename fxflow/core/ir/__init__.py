"""The language: graphs of primitives, and interpreters of them.

To be read in this order:

- `trace`: what an interpreter is, and which is current;
- `graph`: variables, nodes, graphs, as plain data that prints;
- `primitive`: an operation with all its rules, and the answers of most to some;
- `references`: arrays that change, to each interpreter;
- `staging`: the interpreter that records a graph;
- `arith`: the few operations that the interpreters themselves need;
- `discharge`: from graphs with references to graphs of arrays;
- `higher_order`: operations whose parameters hold graphs.
"""
