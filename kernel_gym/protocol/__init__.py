"""The messages between the judge, the workers and the simulated GPU; see docs/messages.md."""
