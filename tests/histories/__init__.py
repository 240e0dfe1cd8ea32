"""Properties over long generated histories of the scheduler: too long for the unit run, part of `make test`."""
