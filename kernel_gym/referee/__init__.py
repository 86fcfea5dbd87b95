"""The referee: judges a kernel that someone claims is faster, and writes an evidence card."""
