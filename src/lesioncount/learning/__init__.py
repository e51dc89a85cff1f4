"""Networks that segment and count: what they learn from, how they are trained, and the maps they make."""
