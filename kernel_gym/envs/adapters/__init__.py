"""`KernelOpt-v0` for frameworks that have their own training loop.

:mod:`~kernel_gym.envs.adapters.trl` for TRL's `environment_factory`,
:mod:`~kernel_gym.envs.adapters.openenv` for a server and client of OpenEnv, and
:mod:`~kernel_gym.envs.adapters.verifiers` for environments of `verifiers`. Each is a
thin layer over :class:`kernel_gym.envs.adapters.episode.TextEpisode`; none judges or scores.
"""
