"""The timing model: from counted events of a launch to modelled seconds."""
