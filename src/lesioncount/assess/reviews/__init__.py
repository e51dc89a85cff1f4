"""What people decide about candidates: journals, counts after review, agreement of readers; no page and no server."""
