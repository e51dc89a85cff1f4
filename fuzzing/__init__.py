"""Mutated files → everything that reads them, each in a process that may die: `make fuzz`."""
