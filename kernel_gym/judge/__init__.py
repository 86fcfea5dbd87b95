"""The stages of an evaluation, all on the trusted side."""
