"""Child processes: a warm template that forks them, their confinement, and the pipes to them."""
