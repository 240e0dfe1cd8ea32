"""Attempts as jobs of an existing Slurm cluster: corral decides the order, Slurm enforces and starts."""
