"""The backend for simulated AMD GPUs, `sim:ARCH`: times are modelled."""
