"""What to solve: problems, tasks, workloads and the suites that list them."""
