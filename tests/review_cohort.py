"""A small run with maps of known candidates, for tests of reviews."""

import nibabel as nib
import numpy as np

from lesioncount.assess.reviews.journals import ReaderJournal, ReviewEvent
from lesioncount.assess.reviews.scan_review import counting_of, reviewed_lesions
from lesioncount.results.results import read_counted
from lesioncount.runs import count_batch

SHAPE = (24, 20, 12)


def write_map(path, peaks, *, shape=SHAPE):
    """A map with a candidate of 2 voxels for each peak, each in a row of its own."""
    voxels = np.zeros(shape, np.float32)
    for number, peak in enumerate(peaks):
        place = (2 + 4 * (number % 5), 2 + 4 * (number // 5), 3)[: len(shape)]
        voxels[place] = peak
        voxels[(place[0] + 1, *place[1:])] = peak * 0.9
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(voxels, np.diag([2.0, 2, 2, 1])), path)


def counted(folder, peaks_by_scan, **options):
    """Results of a run over such maps, in ``out`` beside ``maps`` and ``images``."""
    for name, peaks in peaks_by_scan.items():
        write_map(folder / "maps" / f"{name}.nii.gz", peaks)
        write_map(folder / "images" / f"{name}.nii.gz", peaks)
    count_batch([folder / "maps"], folder / "out", **options)
    return read_counted(folder / "out")


class SimulatedReader:
    """Someone who decides as told, writing to a journal as the server does."""

    def __init__(self, results, name="ann"):
        self.results, self.journal = results, ReaderJournal(results.out, name)

    def _write(self, scan, **what):
        sha256 = self.results.record(scan).summary.files.sha256
        counting = counting_of(self.results.run.settings)
        event = ReviewEvent(reader=self.journal.reader, scan=scan, map_sha256=sha256, counting=counting, **what)
        self.journal.append(event)
        return event

    def decide(self, scan, label, verdict, n=1, seconds=1.0):
        lesion = reviewed_lesions(self.results.record(scan))[label - 1]
        return self._write(
            scan, action="decide", candidate=label, peak=lesion.peak, verdict=verdict, n=n, seconds=seconds
        )

    def add(self, scan, at):
        return self._write(scan, action="add", at=at)

    def undo(self, scan, event):
        return self._write(scan, action="undo", undoes=event.id)

    def done(self, scan, *, rest=None, done=True):
        return self._write(scan, action="done", done=done, rest=rest)
