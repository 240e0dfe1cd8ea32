"""The words that users of Slurm, docker and kubectl type: tables of aliases, and the reading of command lines."""
