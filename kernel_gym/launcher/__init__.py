"""The launcher of GPUs: a trusted process that executes launch plans over the driver's interface.

It holds code objects of a candidate and no host code of it, no secret and no oracle. One code
serves NVIDIA's driver and AMD's HIP runtime, which have the same functions under other names.
"""
