"""`corral preset`: presets, and the models and data sets that they train with."""
