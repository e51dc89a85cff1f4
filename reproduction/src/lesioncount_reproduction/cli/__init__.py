"""The commands ``lesioncount reproduce`` and ``lesioncount synthesize``, found by their entry points."""
