"""The drop-in HIP runtime: a simulated GPU for programs that any build system has made."""
