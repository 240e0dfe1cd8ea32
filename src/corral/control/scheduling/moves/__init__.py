"""Moves and resizes of running jobs by request: what they change, what they cost, and how they are carried out."""
