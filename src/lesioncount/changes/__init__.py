"""Two times → what is new, gone and persisting: `lesion_changes` has the comparison."""
