"""The simulator: the same core as in the live system in virtual time. Jobs arrive, are planned, run and end."""
