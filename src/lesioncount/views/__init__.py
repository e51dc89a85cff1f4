"""How a count looks: in a terminal, and in a notebook."""
