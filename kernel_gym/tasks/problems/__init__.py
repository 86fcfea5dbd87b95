"""Problems, one folder each. Folders outside join them by an environment variable."""

import os

TASKS_PATH = "KERNEL_GYM_TASKS_PATH"
"""Folders of problem folders, separated as in PATH; processes that are started inherit it."""

__path__ = [*__path__, *filter(None, os.environ.get(TASKS_PATH, "").split(os.pathsep))]
