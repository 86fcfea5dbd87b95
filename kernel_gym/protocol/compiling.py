"""The page on which a worker notes the kernel that it compiles, for the text of a time-out.

It holds UTF-8 text, then zeros. Nothing depends on it but messages: a candidate may write it.
"""

SIZE = 256
"""Bytes of the page."""
