"""The machine: arrays, types, graphs, traces, lowering; no operation is named here."""
