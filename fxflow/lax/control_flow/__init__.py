"""Branches and loops: functions of the user's functions, each beside its primitive.

In reading order: `carry` (what they check and convert), `cond`, `cond_rows` (the
branches of a vectorized condition), `scan_lowering`, `scan_derivatives`, `scan`,
`while_loop`, `map`, `doubling_scan`, `associative_scan`.
"""
