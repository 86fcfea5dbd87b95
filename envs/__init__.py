"""Gymnasium environments over the evaluator.

`KernelOpt-v0` is registered by `import kernel_gym`; its class is
:class:`kernel_gym.envs.kernel_opt.KernelOptEnv`.
"""
