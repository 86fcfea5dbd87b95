"""Policies: conversations in, replies out, many at a time.

A policy is a subclass of :class:`~kernel_gym.policies.base.Policy` with one method. To give it a
name, decorate it with :func:`~kernel_gym.policies.registry.register_policy`, and add the name and
its module to :mod:`kernel_gym.policies.names`.

The public names are in `__init__.pyi` and are imported on first use, because most of them load
PyTorch.
"""

from kernel_gym.extras import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
