"""Valid files of every kind that the library writes itself: made once, and changed in each input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

N_SCANS = 6

CONFIG = """preset = "smoke"
[data]
patients = [4, 2, 2]
shape = [8, 16, 16]
[network]
filters = 2
levels = 2
[optimizer]
learning_rate = 0.001
[loss]
positive_weight = 3.0
[run]
pretrain_epochs = 1
epochs = 0
batch_size = 2
threads = 1
"""


def make_home(home: Path) -> None:
    """Write all of them into a folder."""
    rng = np.random.default_rng(0)
    home.mkdir(parents=True, exist_ok=True)
    _maps_and_results(rng, home)
    _calibration(rng, home)
    _nnunet(rng, home)
    _dicom(rng, home)
    (home / "config.toml").write_text(CONFIG, "utf-8")
    (home / "protocol.json").write_text(
        json.dumps({"threshold": 0.2, "connectivity": 26, "min_voxels": 2, "min_volume_mm3": 0, "min_diameter_mm": 0})
    )
    _checkpoint(home)


def _maps_and_results(rng: np.random.Generator, home: Path) -> None:
    from lesioncount.assess.beside_truth import TruthOptions
    from lesioncount.assess.evaluation import evaluate
    from lesioncount.report.evaluation import write_evaluation_page
    from lesioncount.runs import Settings, compare_batch, count_batch
    from lesioncount.trust.calibration import Calibration
    from lesioncount.trust.fitting import CalibrationFit

    (home / "maps").mkdir()
    (home / "masks").mkdir()
    for i in range(N_SCANS):
        values = (rng.random((5, 6, 7)) ** 6).astype(np.float32)
        np.save(home / "maps" / f"s{i}.npy", values)
        np.save(home / "masks" / f"s{i}.npy", (values > 0.4).astype(np.uint8))
    settings = Settings(calibration=CalibrationFit(Calibration.for_positive_weight(3)))
    results = count_batch([home / "maps"], home / "results", settings=settings)
    count_batch([home / "maps", home / "maps"], home / "members", members=True)
    count_batch([home / "maps"], home / "plain")
    compare_batch([home / "maps", home / "maps"], home / "changes")
    np.save(home / "regions.npy", rng.integers(0, 4, (5, 6, 7)).astype(np.uint8))
    rows = [f"s{i}\t{scan.counted.raw.count_mode}\tp{i // 2}" for i, scan in enumerate(results.scans)]
    (home / "truth.tsv").write_text("scan\tcount\tpatient\n" + "\n".join(rows) + "\n", "utf-8")
    evaluate(home / "results", home / "evaluation", TruthOptions(masks=(home / "masks",)))
    write_evaluation_page(home / "evaluation")
    _review(home)


def _review(home: Path) -> None:
    """The journal of a reader who decides about some candidates, and has looked at most scans."""
    _of_tests()
    from review_cohort import SimulatedReader

    from lesioncount.results.results import read_counted

    ann = SimulatedReader(read_counted(home / "results"))
    for i in range(N_SCANS):
        verdict = ("lesion", "none", "unsure", "several")[i % 4]
        first = ann.decide(f"s{i}", 1, verdict, n=2 if verdict == "several" else 1)
        if i == 1:
            ann.undo("s1", first)
        ann.add(f"s{i}", (1, 2, i))
        if i:
            ann.done(f"s{i}", rest="none")


def _calibration(rng: np.random.Generator, home: Path) -> None:
    from lesioncount.protocol import CountingProtocol
    from lesioncount.trust.fitting import CalibrationFit, KnownTruth

    existence = [rng.uniform(0.1, 1, rng.poisson(3)) for _ in range(50)]
    truth = KnownTruth.of(existence, [int((rng.random(len(p)) < p).sum()) for p in existence])
    CalibrationFit.fit(truth, protocol=CountingProtocol()).save(home / "calibration.json")


def _nnunet(rng: np.random.Generator, home: Path) -> None:
    import nibabel

    folder = home / "nnunet"
    folder.mkdir()
    lesion = (rng.random((5, 6, 7)) ** 6).astype(np.float32)
    np.savez_compressed(folder / "map.npz", probabilities=np.stack([1 - lesion, lesion]))
    labels = (lesion > 0.5).astype(np.uint8).T
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), folder / "map.nii.gz")
    (folder / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "lesion": 1}}))
    (folder / "plans.json").write_text(json.dumps({"image_reader_writer": "SimpleITKIO"}))


def _dicom(rng: np.random.Generator, home: Path) -> None:
    _of_tests()
    from dicom_files import fractional_segmentation

    values = 0.02 + 0.98 * rng.random((4, 6, 5)) ** 6  # nowhere 0, so that no frame is left out as empty
    path, _ = fractional_segmentation(home, values.astype(np.float32))
    assert path == home / "seg.dcm"  # noqa: S101 - the name that inputs are made from


def _of_tests() -> None:
    """Let modules of the tests be imported: the one maker of DICOM segmentations, and of journals, is theirs."""
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


def _checkpoint(home: Path) -> None:
    """As `lesioncount train` writes it."""
    import warnings

    from lesioncount.learning.config import TrainingConfig
    from lesioncount.learning.training import train
    from lesioncount_reproduction.sources import sources_of

    config = TrainingConfig.from_toml(CONFIG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(config, home / "training", progress=False, parts=sources_of(config))
    shutil.copy(home / "training" / "best.ckpt", home / "best.ckpt")
