"""The worker: its client of the servers, and its training step."""
