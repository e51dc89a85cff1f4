"""What was given: which files are scans, what they are called, whose they are, and what belongs to them."""
