# The public names, once: type checkers read this file, and the first use imports from it.
from .registry import (
    Backend as Backend,
    DeviceStatus as DeviceStatus,
    UnknownDevice as UnknownDevice,
    backend_of as backend_of,
    describe as describe,
    device_names as device_names,
    device_status as device_status,
    device_statuses as device_statuses,
    fixed_names as fixed_names,
    open_device as open_device,
    register_backend as register_backend,
    require_device as require_device,
    resolve as resolve,
    unregister_backend as unregister_backend,
)
