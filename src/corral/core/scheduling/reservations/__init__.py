"""Reservations: reserved GPUs, their windows and their selection."""
