"""Readings of AMD GPUs."""
