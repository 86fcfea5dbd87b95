"""Bounds on a plan: what a hostile process can make us read, hold or launch."""

from __future__ import annotations

MAX_PLAN_JSON_BYTES = 4 << 20
"""Bytes of the JSON of a plan. Parsed, it takes up to thirty times that size."""
MAX_CODES = 256
MAX_CODE_BYTES = 4 << 20
"""Bytes of one code object."""
MAX_CODES_BYTES = 64 << 20
"""Bytes of all code objects of a plan."""
MAX_KERNELS = 1024
MAX_NAME_CHARACTERS = 4096
"""Characters of a symbol; C++ compilers make long ones."""
MAX_BUFFERS = 1 << 14
MAX_MEMORY_BYTES = 64 << 30
"""Bytes of all buffers of a plan together, and of one tensor with its repeated elements."""
MAX_STEPS = 4096
"""Launches, fills, copies and uploads of one call."""
MAX_ARGUMENTS = 1024
"""Arguments of one launch."""
MAX_ARGUMENTS_BYTES = 1 << 16
"""Bytes of all arguments of one launch."""
MAX_CONSTANTS_BYTES = 1 << 20
"""Bytes of all constants of a plan. A table of answers for known inputs does not fit."""
MAX_REFERENCES = 1 << 16
"""Addresses of buffers in all arguments and constants of a plan."""
MAX_SHARED_BYTES = 1 << 20
"""Bytes of shared memory of a workgroup; each device has a lower limit of its own."""
MAX_BLOCK_THREADS = 1024
MAX_GRID = (1 << 31) - 1
"""Workgroups of a launch, along each axis and in all."""
MAX_OUTPUTS = 4096
MAX_AXES = 16
MAX_OPERATOR_CHARACTERS = 1 << 16
"""Characters of the JSON of an operator's arguments."""
MAX_OPERATOR_VALUES = 4096
"""Values in it, nested ones included."""
