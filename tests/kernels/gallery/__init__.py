"""Tests of the kernels that fxflow runs."""
