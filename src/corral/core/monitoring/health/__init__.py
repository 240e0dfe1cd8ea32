"""Whether a GPU can be trusted with work: signs, their confirmation, and the way back."""
