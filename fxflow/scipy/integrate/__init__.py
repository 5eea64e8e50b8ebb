"""Integrals of samples: `fxflow.scipy.integrate`."""

from fxflow.numpy.calculus import trapezoid

__all__ = ["trapezoid"]
