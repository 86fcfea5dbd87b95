"""A corpus of candidates of known truth, and judges that are measured with it."""
