"""Compiles assembler text to the engine's instructions and their side tables."""
