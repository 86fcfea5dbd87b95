"""The worker on a real GPU: loads a candidate, calls it, runs timed blocks."""
