"""Where imports run: code of suites in confined processes, and the admission of their tasks."""
