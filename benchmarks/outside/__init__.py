"""`python -m benchmarks outside`: programs of others on the simulated GPU, and their table."""
