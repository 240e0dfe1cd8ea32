"""Preemption: which running jobs are preempted or moved, for which job, and by which rule."""
