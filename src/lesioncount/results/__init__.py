"""What is written of a run: records, tables and settings, and how they are read back."""
