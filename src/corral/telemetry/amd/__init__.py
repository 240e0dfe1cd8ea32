"""Readings of AMD's GPUs, through the package `amdsmi` or the programs `amd-smi` and `rocm-smi`."""
