"""Kernels that fxflow's functions run; each module is imported when it is needed."""
