"""A Slurm cluster: nodes, partitions, reservations, drains, and GPUs that other jobs hold."""
