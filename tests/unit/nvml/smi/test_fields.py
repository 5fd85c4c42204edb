"""The table of fields, against the names that real drivers list."""

from __future__ import annotations

import itertools
import re

from va100.nvml.smi.fields import GPU_FIELDS, by_name

LISTED = """
driver_version vgpu_driver_capability.heterogenous_multivGPU count name gpu_name serial gpu_serial
uuid gpu_uuid pci.bus_id gpu_bus_id pci.domain pci.bus pci.device pci.device_id pci.sub_device_id
vgpu_device_capability.{fractional_multiVgpu,heterogeneous_timeSlice_profile,heterogeneous_timeSlice_sizes}
pcie.link.gen.{current,gpucurrent,max,gpumax,hostmax} pcie.link.width.{current,max} index
display_mode display_active persistence_mode addressing_mode accounting.{mode,buffer_size}
driver_model.{current,pending} vbios_version inforom.{img,image,oem,ecc,pwr,power}
reset_status.{reset_required,drain_and_reset_recommended} gom.{current,pending} fan.speed pstate
clocks_{event,throttle}_reasons.{supported,active,gpu_idle,applications_clocks_setting}
clocks_{event,throttle}_reasons.{sw_power_cap,hw_slowdown,hw_thermal_slowdown}
clocks_{event,throttle}_reasons.{hw_power_brake_slowdown,sw_thermal_slowdown,sync_boost}
memory.{total,reserved,used,free} compute_mode compute_cap
utilization.{gpu,memory,encoder,decoder,jpeg,ofa}
encoder.stats.{sessionCount,averageFps,averageLatency} ecc.mode.{current,pending}
ecc.errors.{corrected,uncorrected}.{volatile,aggregate}.{device_memory,dram,register_file,l1_cache}
ecc.errors.{corrected,uncorrected}.{volatile,aggregate}.{l2_cache,texture_memory,cbu,sram,total}
retired_pages.{single_bit_ecc.count,sbe,double_bit.count,dbe,pending}
temperature.{gpu,gpu.tlimit,memory}
power.{management,draw,draw.average,draw.instant,limit,default_limit,min_limit,max_limit}
enforced.power.limit clocks.{current.graphics,gr,current.sm,sm,current.memory,mem}
clocks.{current.video,video} clocks.applications.{graphics,gr,memory,mem}
clocks.default_applications.{graphics,memory} clocks.max.{graphics,gr,sm,memory,mem}
mig.mode.{current,pending} gsp.mode.{current,default} protected_memory.{total,used,free}
fabric.{state,status}
"""


def spelled_out(word):
    """All that a word with choices in braces stands for."""
    parts = re.split(r"\{([^}]*)\}", word)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def test_every_listed_field_is_known():
    names = [name for word in LISTED.split() for name in spelled_out(word)]
    assert len(names) > 130
    assert [name for name in names if name.lower() not in by_name(GPU_FIELDS)] == []


def test_no_name_means_two_fields():
    names = [name.lower() for field in GPU_FIELDS for name in (field.name, *field.aliases)]
    assert len(names) == len(set(names))
