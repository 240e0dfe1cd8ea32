"""GPU health: signs of faults, their confirmation, and recovery."""
