"""Adapters of judges, one module each."""
