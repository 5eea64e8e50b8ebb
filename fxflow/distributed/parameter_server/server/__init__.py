"""A server process: what it holds, and how that outlives it."""
