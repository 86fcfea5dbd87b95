"""Where kernels run: names, backends, descriptions, and what each device can do here."""

from kernel_gym.devices.registry import (
    Backend,
    DeviceStatus,
    UnknownDevice,
    backend_of,
    describe,
    device_names,
    device_status,
    device_statuses,
    fixed_names,
    open_device,
    register_backend,
    require_device,
    resolve,
    unregister_backend,
)

__all__ = [
    "Backend",
    "DeviceStatus",
    "UnknownDevice",
    "backend_of",
    "describe",
    "device_names",
    "device_status",
    "device_statuses",
    "fixed_names",
    "open_device",
    "register_backend",
    "require_device",
    "resolve",
    "unregister_backend",
]
