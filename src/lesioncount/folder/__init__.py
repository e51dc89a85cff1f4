"""A folder of files that are ours: complete or not there, and never those of others."""
