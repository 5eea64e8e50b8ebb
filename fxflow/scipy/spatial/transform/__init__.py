"""Rotations in space: `fxflow.scipy.spatial.transform`."""

from fxflow.core.boundary import public as _public
from fxflow.scipy.spatial.transform.rigid import RigidTransform
from fxflow.scipy.spatial.transform.rotation import Rotation
from fxflow.scipy.spatial.transform.rotation_spline import RotationSpline
from fxflow.scipy.spatial.transform.slerp import Slerp

__all__ = ["RigidTransform", "Rotation", "RotationSpline", "Slerp"]

_public(globals(), __all__)
