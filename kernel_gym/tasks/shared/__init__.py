"""Shared parts of several problems: generators, samplers, formats. Part of their content."""
