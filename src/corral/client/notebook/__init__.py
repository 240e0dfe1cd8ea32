"""Corral in notebooks: `%load_ext corral`, then `%%corral --gpus 1` as the first line of a cell."""
