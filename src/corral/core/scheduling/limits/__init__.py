"""Limits, quotas, guarantees and other rules that hold a job back although there may be room for it."""
