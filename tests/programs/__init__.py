"""Random programs: however one is run, on whatever devices, it has one answer.

    pytest tests/programs                             # 200 programs, as in CI
    python -m tests.programs --count 5000 --seed 11   # as many as one has time for
    python -m tests.programs --jax path/to/python …   # JAX's answers beside ours

In the order to read:

- `operations`, `of_arrays`, `of_programs`, `of_passes`: what a program is made of.
- `drawing`: draws programs, as plain data, by a seed.
- `running`: runs one in several ways: eagerly, compiled, vectorized, differentiated, …
- `child`: the process that does so, since a program may crash it.
- `comparing`: when two answers are the same, and when a program cannot tell.
- `shrinking`: drops what a finding does not need.
- `search`: all of it together.
"""
