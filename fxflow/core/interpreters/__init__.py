"""Interpreters: each does the same to a call of a function as to a graph.

To be read in this order:

- `jvp`: values with their tangents, forwards;
- `linearize`: values, and a graph of what is linear in the tangents;
- `transpose`: a linear graph, backwards;
- `batching`: values with a mapped axis;
- `masking`: effects that happen only for some of the rows;
- `calls`: operations that only call a graph.
"""
