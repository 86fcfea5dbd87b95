"""Suites and modules that others wrote, as tasks: readers, recording, tracing, and their bench."""
