"""Kernel descriptors: 64 bytes by which the hardware starts a kernel.

The fields are those of LLVM's "User Guide for AMDGPU Backend", section "Kernel Descriptor", for
gfx90a and gfx942. Names are those of the ``.amdhsa_`` directives.
"""

from __future__ import annotations

import struct

from kernel_gym.sim.asm.errors import AsmError

BYTES = 64
_LAYOUT = struct.Struct("<IIIIq20xIIIHH4x")
VECTOR_GRANULE = 8
"""Vector registers that the hardware allocates at a time."""
_ACCUMULATOR_GRANULE = 4
_RESOURCES_1 = {
    "float_round_mode_32": (12, 2),
    "float_round_mode_16_64": (14, 2),
    "float_denorm_mode_32": (16, 2),
    "float_denorm_mode_16_64": (18, 2),
    "dx10_clamp": (21, 1),
    "ieee_mode": (23, 1),
    "fp16_overflow": (26, 1),
}
_RESOURCES_2 = {
    "enable_private_segment": (0, 1),
    "user_sgpr_count": (1, 5),
    "system_sgpr_workgroup_id_x": (7, 1),
    "system_sgpr_workgroup_id_y": (8, 1),
    "system_sgpr_workgroup_id_z": (9, 1),
    "system_sgpr_workgroup_info": (10, 1),
    "system_vgpr_workitem_id": (11, 2),
}
_PROPERTIES = {
    "user_sgpr_private_segment_buffer": (0, 1),
    "user_sgpr_dispatch_ptr": (1, 1),
    "user_sgpr_queue_ptr": (2, 1),
    "user_sgpr_kernarg_segment_ptr": (3, 1),
    "user_sgpr_dispatch_id": (4, 1),
    "user_sgpr_flat_scratch_init": (5, 1),
    "user_sgpr_private_segment_size": (6, 1),
    "wavefront_size32": (10, 1),
    "uses_dynamic_stack": (11, 1),
}
_PRELOAD = {
    "user_sgpr_kernarg_preload_length": (0, 7),
    "user_sgpr_kernarg_preload_offset": (7, 9),
}


def read_descriptor(content: bytes) -> tuple[dict[str, int], int]:
    """Reads a descriptor.

    Args:
        content: Its 64 bytes.

    Returns:
        The values of the directives, and the distance from the descriptor to the code in bytes.
        ``next_free_vgpr`` is a multiple of 8, as the hardware allocates registers.

    Raises:
        AsmError: It is for waves of 32 lanes, which these targets do not have.
    """
    lds, scratch, arguments, _, entry, third, first, second, properties, preload = _LAYOUT.unpack(
        content
    )
    values = {
        "group_segment_fixed_size": lds,
        "private_segment_fixed_size": scratch,
        "kernarg_size": arguments,
        "next_free_vgpr": ((first & 63) + 1) * VECTOR_GRANULE,
        "accum_offset": ((third & 63) + 1) * _ACCUMULATOR_GRANULE,
    }
    for word, fields in (
        (first, _RESOURCES_1),
        (second, _RESOURCES_2),
        (properties, _PROPERTIES),
        (preload, _PRELOAD),
    ):
        values |= {name: word >> at & (1 << bits) - 1 for name, (at, bits) in fields.items()}
    if values["wavefront_size32"]:
        raise AsmError("a kernel for waves of 32 lanes, expected 64")
    return values, entry
