"""The calls of each module, in the file of its name."""
