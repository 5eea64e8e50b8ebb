"""A server process: its shards, their logs, and their replication."""
