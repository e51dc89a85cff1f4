"""What step 1 stands on: slabs and bricks of a map, swept from high to low, and merged."""
