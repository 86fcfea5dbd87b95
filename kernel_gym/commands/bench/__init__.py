"""`kernel-gym bench`: benchmarks of the gym itself."""
