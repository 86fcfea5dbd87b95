"""The file with compiled kernels that the judge hands to a worker of a simulated GPU.

It begins with the length of what follows. The rest is the workers' own affair.
"""

import struct

LENGTH = struct.Struct("<Q")
SIZE = 32 << 20
"""Bytes of the file. A kernel takes 10 to 100 KB."""
