"""Files of a run: line records and the run folder."""
