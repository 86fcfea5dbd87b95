"""The memory of a simulated GPU for programs. PyTorch is not loaded for it."""

from kernel_gym.sandbox import host_memory

MAX_DEVICE_BYTES = 8 << 30
"""Upper bound on the simulated GPU's memory, in bytes. The host provides it."""
MAX_SHARE_OF_HOST = 0.5
"""Upper bound on the same, as a share of the host's available memory."""


def device_memory() -> int:
    """Returns how many bytes a program may allocate on the simulated GPU."""
    available = host_memory.available_bytes()
    if available is None:
        return MAX_DEVICE_BYTES
    return min(MAX_DEVICE_BYTES, int(available * MAX_SHARE_OF_HOST))
