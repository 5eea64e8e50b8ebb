"""The two programs are read by type checkers; pytest is to import neither."""

collect_ignore = ["right.py", "wrong.py"]
