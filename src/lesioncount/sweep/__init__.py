"""What step 1 stands on: slabs and bricks of a map, which are swept once and add up; peaks, sizes, voxels."""
