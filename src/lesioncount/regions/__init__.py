"""Where candidates lie: a label map of named regions, and distances to them → a count for each region."""

from lesioncount.regions.places import OUTSIDE, Places, RegionCounts
from lesioncount.regions.regions import Regions
from lesioncount.regions.within import Within

__all__ = ["OUTSIDE", "Places", "RegionCounts", "Regions", "Within"]
