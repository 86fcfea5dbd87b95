"""`kernel-gym sim`: runs programs on a simulated GPU."""
