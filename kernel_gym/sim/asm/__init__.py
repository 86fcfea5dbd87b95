"""Reads AMDGPU assembler text: instructions, operands, metadata and data sections."""
