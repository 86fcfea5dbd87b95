"""Timing on the judge's side: paired measurement on GPUs, modelled times on the simulator."""
