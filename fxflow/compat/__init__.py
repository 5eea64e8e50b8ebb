"""Doors for programs that were written for another library."""
