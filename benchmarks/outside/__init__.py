"""`python -m benchmarks outside`: programs of others on the simulated GPU, and the table of them."""
