"""A small network on plain lists, NumPy or PyTorch: the computing of the trainings that need no data."""
