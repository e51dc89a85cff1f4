"""Optional files of a run: label maps, BIDS, DICOM, OME-Zarr, Parquet."""
