"""The candidates and the count of a scan as DICOM objects: a segmentation, and a structured report."""

from lesioncount.outputs.dicom.writing import Dicom

__all__ = ["Dicom"]
