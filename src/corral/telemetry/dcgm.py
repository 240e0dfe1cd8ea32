"""GPU readings in DCGM's metric names: from what an exporter printed, and to what corral's own exporter prints.

NVIDIA's DCGM exporter and corral's differ a little: units are DCGM's (MiB, mJ, %), and where DCGM has no name for
something, corral prints it under a name of its own. Both spell the host's label `Hostname` or `hostname`.
"""

from __future__ import annotations

MIB = 1 << 20
#: Bits of DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, which are NVML's, and the words for them. Idleness (1) is no reason.
THROTTLE_BITS = (
    (0x002, "app_clocks"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal"),
    (0x040, "hw_thermal"),
    (0x080, "hw_power_brake"),
    (0x100, "display_clocks"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)
#: From here on DCGM means "no value", for whole numbers and for others.
_BLANK_INTEGER = float(0x7FFFFFFFFFFFFFF0)
_BLANK_FLOATS = frozenset(140737488355328.0 + code for code in range(16))

UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ENGINE_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
MEMORY_USED = "DCGM_FI_DEV_FB_USED"
MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"
MEMORY_RESERVED = "DCGM_FI_DEV_FB_RESERVED"
MEMORY_TOTAL = "DCGM_FI_DEV_FB_TOTAL"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
POWER = "DCGM_FI_DEV_POWER_USAGE"
POWER_LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
MEMORY_CLOCK = "DCGM_FI_DEV_MEM_CLOCK"
THROTTLE = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
#: what newer versions call it
THROTTLE_LATER = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
ECC_UNCORRECTED = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
ECC_CORRECTED = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
REMAPPED_UNCORRECTABLE = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
REMAPPED_CORRECTABLE = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
REMAP_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
XID = "DCGM_FI_DEV_XID_ERRORS"
#: corral's own
OWN = "corral_exporter_"
LOST = f"{OWN}gpu_lost"
REMAPPED_ROWS = f"{OWN}gpu_remapped_rows"
XID_EVENTS = f"{OWN}gpu_xid_events_total"
PROCESS_MEMORY = f"{OWN}gpu_process_memory_bytes"
