"""Backfill: the planned start of the first waiting job, and the resources kept for it."""
