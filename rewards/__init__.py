"""From an evaluation to a number."""
