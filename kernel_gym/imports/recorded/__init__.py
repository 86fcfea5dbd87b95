"""Problems made of recorded calls: the calls that the tests of a suite make of its functions."""
