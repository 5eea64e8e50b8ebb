"""The machine: arrays, graphs of operations, their interpreters, and running them.

To be read in this order; each package lists its files in theirs.

- `source`, `caches`: where the user's line is; what is remembered, and for how long;
- `tree`: nested containers of arrays;
- `sizes`: lengths of axes that only a call of an exported program says;
- `arrays`: what values are: dtypes, array types, arrays;
- `ir`: the language: graphs, primitives, interpreters, recording;
- `interpreters`: forward derivatives, linearization, transposition, vectorization;
- `runtime`: from a graph to a program, and running operations at once;
- `spmd`: what several devices add to all of these;
- `boundary`, `labels`: what stands between the user and a public function; what
  messages call its arguments;
- `docs`: what docstrings of a family of functions share.

`docs/tour.md` walks through them by one example.
"""
