"""Automatic sharding."""
