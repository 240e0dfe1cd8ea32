"""Datasets: versions of files, their targets and their lineage."""
