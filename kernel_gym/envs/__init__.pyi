from .kernel_opt import KernelOptEnv as KernelOptEnv
from .kernel_tune import KernelTuneEnv as KernelTuneEnv
from .vector import (
    KernelOptVectorEnv as KernelOptVectorEnv,
    KernelTuneVectorEnv as KernelTuneVectorEnv,
)
