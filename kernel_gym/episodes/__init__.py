"""Episodes: a task with its submissions and their results, read and answered by policies."""
