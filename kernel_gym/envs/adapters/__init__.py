"""`KernelOpt-v0` for frameworks that bring their own loop.

:mod:`~kernel_gym.envs.adapters.trl` for TRL's `environment_factory`,
:mod:`~kernel_gym.envs.adapters.openenv` for a server and client of OpenEnv, and
:mod:`~kernel_gym.envs.adapters.verifiers` for environments of `verifiers`. Each is thin: the
episode is :class:`kernel_gym.envs.adapters.episode.TextEpisode`, and nothing here judges or scores.
"""
