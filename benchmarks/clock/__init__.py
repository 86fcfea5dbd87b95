"""Holds modelled times against measured ones: predict first, then read what was measured."""
