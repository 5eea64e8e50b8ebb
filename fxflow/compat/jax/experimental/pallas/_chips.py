"""What TPUs have, as a table: kernels choose their blocks by it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow.errors import ArgumentError


class ChipVersion(enum.Enum):
    """Generations of TPUs."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"


@dataclass(frozen=True)
class TpuInfo:
    """A TPU.

    Attributes:
      chip_version: which.
      generation: of the chip.
      num_cores, num_lanes, num_sublanes, num_mxus, num_accumulators: numbers of parts.
      mxu_column_size: the length of a matrix unit.
      vmem_capacity_bytes, cmem_capacity_bytes, smem_capacity_bytes,
        hbm_capacity_bytes: sizes of memories.
      mem_bw_bytes_per_second: speed of the large memory.
      bf16_ops_per_second, int8_ops_per_second, fp8_ops_per_second,
        int4_ops_per_second: speeds; 0: it cannot.
      sparse_core: always None: kernels for it do not run here.
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: Any = None

    @property
    def is_lite(self) -> bool:
        """Whether a chip has one core."""
        return self.chip_version.name in ("TPU_V4I", "TPU_V5E", "TPU_V6E")

    @property
    def is_megacore(self) -> bool:
        """Whether two cores are one device."""
        return self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether a device is a part of a chip."""
        return not self.is_lite and self.num_cores == 1

    def get_sublane_tiling(self, dtype: Any) -> int:
        """Returns how many rows a tile of memory has.

        Args:
          dtype: dtype of the elements.
        """
        packed: int = max(1, 4 // np.dtype(dtype).itemsize)
        return self.num_sublanes * packed


_M, _G, _T = 1 << 20, 10**9, 10**12
#: Each row: generation, cores of a device, the side of a matrix unit, matrix units,
#: accumulators; bytes of VMEM, CMEM, SMEM and HBM, and how many of these a second; and
#: operations a second in bfloat16, int8, fp8 and int4.
_CHIPS: dict[str, tuple[Any, ...]] = {
    "v2": (2, (1,), 128, 1, 0, 16 * _M, 0, 1 << 14, 8.0, 358.0, 23, 0, 0, 0),
    "v3": (3, (1,), 128, 2, 0, 16 * _M, 0, 1 << 14, 17.2, 412.5, 70, 0, 0, 0),
    "v4i": (4, (1,), 128, 4, 0, 16 * _M, 134_000_000, _M, 8.59, 614.0, 137, 0, 0, 0),
    "v4": (4, (1, 2), 128, 4, 0, 16 * _M, 67_000_000, _M, 17.2, 615.0, 137.5, 0, 0, 0),
    "v5e": (5, (1,), 128, 4, 0, 128 * _M, 0, _M, 17.2, 820.0, 197, 394, 0, 788),
    "v5p": (5, (1, 2), 128, 4, 0, 64 * _M, 0, _M, 51.5, 1230.0, 229.5, 459, 0, 920),
    "v6e": (6, (1,), 256, 2, 0, 128 * _M, 0, _M, 34.4, 1640.0, 920, 1840, 920, 3680),
    "7": (7, (1,), 256, 2, 128, 64 * _M, 0, _M, 103.0, 3700.0, 1155, 0, 2300, 0),
    "7x": (7, (1,), 256, 2, 128, 64 * _M, 0, _M, 103.0, 3700.0, 1155, 0, 2300, 0),
    "8i": (8, (1,), 256, 2, 256, 192 * _M, 0, _M, 154.5, 4300.0, 550.5, 0, 4404, 0),
}


def get_tpu_info_for_chip(
    chip_version: ChipVersion, num_tensor_cores_per_logical_device: int
) -> TpuInfo:
    """Returns what a TPU has.

    Args:
      chip_version: of the TPU.
      num_tensor_cores_per_logical_device: cores of a device.

    Returns:
      A `TpuInfo`.

    Raises:
      ArgumentError: the chip has no such devices.

    Source: JAX 0.10.2's `get_tpu_info_for_chip`.
    """
    row = _CHIPS[chip_version.value]
    generation, cores, column, mxus, accumulators, vmem, cmem, smem, hbm, speed = row[
        :10
    ]
    if num_tensor_cores_per_logical_device not in cores:
        raise ArgumentError(
            f"get_tpu_info_for_chip: a device of {chip_version.name} has "
            f"{' or '.join(map(str, cores))} cores, got "
            f"{num_tensor_cores_per_logical_device}"
        )
    return TpuInfo(
        chip_version,
        generation,
        num_tensor_cores_per_logical_device,
        128,
        8,
        column,
        mxus,
        accumulators,
        vmem,
        cmem,
        smem,
        round(hbm * _G),
        round(speed * _G),
        *(round(n * _T) for n in row[10:]),
    )


def get_tpu_info() -> TpuInfo:
    """Returns what the TPU has that kernels are to be written for: a v5e.

    Returns:
      A `TpuInfo`.
    """
    return get_tpu_info_for_chip(ChipVersion.TPU_V5E, 1)


def is_tpu_device() -> bool:
    """Returns whether the default device is a TPU.

    Returns:
      False.
    """
    return False
