"""Clusters: `fxflow.scipy.cluster.vq`."""

from fxflow.scipy.cluster import vq

__all__ = ["vq"]
