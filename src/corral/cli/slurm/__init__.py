"""The look-alikes of sbatch, squeue, scancel and sinfo."""
