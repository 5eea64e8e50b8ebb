"""Primitive operations: one file for each family."""
