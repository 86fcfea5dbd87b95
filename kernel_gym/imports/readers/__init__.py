"""Suites that others wrote, as tasks: reading a checkout, manifests, and finding tasks.

A reader lists what a checkout holds and makes a problem from each of its tasks. It only
reads files: code of a suite runs in confined workers, never in this process.
"""
