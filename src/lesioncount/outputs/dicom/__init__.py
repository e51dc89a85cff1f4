"""The candidates and the count of a scan as DICOM objects: a segmentation, and a structured report."""

from lesioncount.outputs.dicom.writing import dicom_names, write_dicom

__all__ = ["dicom_names", "write_dicom"]
