"""Scheduling: queues, order, placement, backfill, preemption, elastic jobs, reservations and estimated starts."""
