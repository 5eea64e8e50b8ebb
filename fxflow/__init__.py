"""fxflow: pure functions over immutable arrays, traced into dataflow graphs, run by XLA."""
