"""Slices of an array read from, or combined with updates at, computed indices.

In reading order: `dimension_numbers` (how axes correspond, modes, checks), `slices`
(where the slices lie, for NumPy and for XLA), `gather`, `scatter_family` (what scatters
share), `scatter`, `scatter_apply`.
"""
