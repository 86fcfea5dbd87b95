"""Suites that others wrote, as tasks of ours: reading a checkout, manifests, and finding tasks.

A reader lists what a checkout holds and makes one of our problems from one of its tasks. It only
reads files: code of a suite runs in confined workers, never in this process.
"""
