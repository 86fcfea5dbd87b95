"""What several problems state alike: generators, samplers, formats. Part of their content."""
