"""A page to review candidates on: ``lesioncount review``. Journals and counts after review are in `assess.reviews`."""
