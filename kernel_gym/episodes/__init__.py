"""Episodes: a task, its submissions with evaluations and feedback, and how they are played."""
