"""Kernels: functions on blocks of arrays, run once for each point of a grid."""
