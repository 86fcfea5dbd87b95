"""A simulator of AMD Instinct GPUs: runs their machine code on the CPU and models its time."""
