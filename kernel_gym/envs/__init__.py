"""Gymnasium environments over the evaluator.

`KernelOpt-v0` (write a kernel) and `KernelTune-v0` (choose its schedule) are registered by
`import kernel_gym`; their classes are :class:`kernel_gym.envs.kernel_opt.KernelOptEnv` and
:class:`kernel_gym.envs.kernel_tune.KernelTuneEnv`.
"""
