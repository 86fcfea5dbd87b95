"""`KernelOpt-v0` for frameworks that have their own training loop, one module each.

Each is a thin layer over :class:`kernel_gym.envs.sessions.Sessions`; none judges or scores. Where a
trainer sums the rewards of steps, a step pays the increment of the episode's reward. An evaluation
that failed because of the machine is None where the trainer takes None, else an exception
(:class:`~kernel_gym.episodes.session.MaskedEvaluation`); it is never a number.
"""
