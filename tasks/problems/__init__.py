"""Problems, one folder each; folders outside join them here, see `tasks/registry.py`."""
