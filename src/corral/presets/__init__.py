"""The presets that come with corral: templates, and the trainings that they run.

The trainings run in the environments of jobs: Python 3.9, its standard library, `corral.checkpoint`, and NumPy or
PyTorch where they are installed.
"""
