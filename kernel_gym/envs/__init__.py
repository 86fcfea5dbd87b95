"""Gymnasium environments over the evaluator.

`KernelOpt-v0` (write a kernel) and `KernelTune-v0` (choose its schedule) are registered by
`import kernel_gym`; their classes are :class:`kernel_gym.envs.kernel_opt.KernelOptEnv` and
:class:`kernel_gym.envs.kernel_tune.KernelTuneEnv`.

The public names are in `__init__.pyi` and are imported on first use, because they load PyTorch.
"""

from kernel_gym.extras import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
