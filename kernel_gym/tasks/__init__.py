"""The work of a policy: problems, tasks, workloads and the suites that list them.

The public names are in `__init__.pyi` and are imported on first use. Code that only reads records
needs the splits and kinds of workloads but not PyTorch, which takes seconds to load.
"""

from kernel_gym.extras import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
