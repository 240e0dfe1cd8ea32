"""Attacks on a real server by people who have an account there, one file per boundary."""
