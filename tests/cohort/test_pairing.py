"""Images, masks and truth of scans: the right one, none, or an error, but never a wrong one."""

from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main
from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.pairing import pair
from lesioncount.cohort.scans import Selection
from lesioncount.errors import MapFileError


def write(root, paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def scans_of(root, maps, **selection):
    write(root, maps)
    return Selection(**selection).find([root], root / "out")


def pairs(scans, where, role="truth", suffix=""):
    """The path below the map's root → that of its partner below the parent of where."""
    base = Path(str(where).partition("{")[0].rpartition("/")[0]) if "{" in str(where) else where
    found = pair({scan.name: FileFacts.unread(scan) for scan in scans}, where, role=role, suffix=suffix)
    return {
        scan.relative.as_posix(): found[scan.name].relative_to(base).as_posix() if scan.name in found else None
        for scan in scans
    }


class TestNnunet:
    """Cases with a number, channels behind them, labels of the same name."""

    @pytest.fixture
    def scans(self, tmp_path):
        cases = ("ms_001", "ms_002")
        write(tmp_path, [f"labelsTs/{case}.nii.gz" for case in cases])
        write(tmp_path, [f"imagesTs/{case}_000{n}.nii.gz" for case in cases for n in (0, 1)])
        found = scans_of(tmp_path / "pred", [f"{case}{end}" for case in cases for end in (".npz", ".nii.gz")])
        assert [scan.path.suffix for scan in found] == [".npz", ".npz"], "segmentations are no maps"
        return found

    def test_labels_have_the_names_of_the_maps(self, scans, tmp_path):
        assert pairs(scans, tmp_path / "labelsTs") == {f"ms_00{n}.npz": f"ms_00{n}.nii.gz" for n in (1, 2)}

    def test_the_first_channel_is_shown_unless_another_is_named(self, scans, tmp_path):
        images = tmp_path / "imagesTs"
        assert pairs(scans, images, "image") == {f"ms_00{n}.npz": f"ms_00{n}_0000.nii.gz" for n in (1, 2)}
        second = {f"ms_00{n}.npz": f"ms_00{n}_0001.nii.gz" for n in (1, 2)}
        assert pairs(scans, images, "image", "_0001") == second
        assert pairs(scans, images / "{name}_0001.nii.gz", "image") == second

    def test_a_case_without_labels_has_none(self, scans, tmp_path):
        (tmp_path / "labelsTs" / "ms_002.nii.gz").unlink()
        assert pairs(scans, tmp_path / "labelsTs") == {"ms_001.npz": "ms_001.nii.gz", "ms_002.npz": None}


class TestBids:
    """Raw data and two derivatives: maps of a network, and masks by experts."""

    VISITS = (("01", "01"), ("01", "02"), ("02", "01"))

    @pytest.fixture
    def scans(self, tmp_path):
        bases = [f"sub-{sub}/ses-{ses}/anat/sub-{sub}_ses-{ses}" for sub, ses in self.VISITS]
        write(tmp_path / "raw", [f"{base}_{kind}.nii.gz" for base in bases for kind in ("FLAIR", "T1w")])
        write(tmp_path / "experts", [f"{base}_label-lesion_mask.nii.gz" for base in bases])
        return scans_of(tmp_path / "net", [f"{base}_desc-net_probseg.nii.gz" for base in bases])

    def expected(self, what):
        for sub, ses in self.VISITS:
            base = f"sub-{sub}/ses-{ses}/anat/sub-{sub}_ses-{ses}"
            yield f"{base}_desc-net_probseg.nii.gz", f"{base}_{what}.nii.gz"

    def test_masks_are_those_of_the_visit(self, scans, tmp_path):
        assert pairs(scans, tmp_path / "experts") == dict(self.expected("label-lesion_mask"))
        assert pairs(scans, tmp_path / "experts", "mask") == dict(self.expected("label-lesion_mask"))

    def test_two_kinds_of_images_must_be_told_apart(self, scans, tmp_path):
        with pytest.raises(
            MapFileError, match=r"Which is the image of .*sub-01_ses-01.*2 that may be: .*--images-suffix"
        ):
            pairs(scans, tmp_path / "raw", "image")
        assert pairs(scans, tmp_path / "raw", "image", "_FLAIR") == dict(self.expected("FLAIR"))
        pattern = "sub-{participant}/ses-{session}/anat/sub-{participant}_ses-{session}_T1w.nii.gz"
        assert pairs(scans, tmp_path / "raw" / pattern, "image") == dict(self.expected("T1w"))

    def test_a_missing_mask_is_not_that_of_another_visit(self, scans, tmp_path):
        next((tmp_path / "experts").rglob("sub-01_ses-02_*")).unlink()
        assert list(pairs(scans, tmp_path / "experts").values())[1] is None

    def test_different_kinds_for_different_visits_are_an_error(self, scans, tmp_path):
        for path in (tmp_path / "raw").rglob("sub-01_ses-01_FLAIR*"):
            path.unlink()
        for path in (tmp_path / "raw").rglob("*T1w*"):
            if "sub-01_ses-01" not in path.name:
                path.unlink()
        with pytest.raises(MapFileError, match="Of different scans there are different kinds of files"):
            pairs(scans, tmp_path / "raw", "image")

    def test_runs_are_told_apart(self, tmp_path):
        base = "sub-01/anat/sub-01_run-{}_{}.nii.gz"
        scans = scans_of(tmp_path / "net", [base.format(n, "probseg") for n in (1, 2)])
        write(tmp_path / "experts", [base.format(n, "mask") for n in (1, 2)])
        assert pairs(scans, tmp_path / "experts") == {base.format(n, "probseg"): base.format(n, "mask") for n in (1, 2)}
        (tmp_path / "experts" / base.format(2, "mask")).unlink()
        assert list(pairs(scans, tmp_path / "experts").values()) == [base.format(1, "mask"), None]
        write(tmp_path / "other", ["sub-01/anat/sub-01_mask.nii.gz"])
        with pytest.raises(MapFileError, match="would be the truth of both"):
            pairs(scans, tmp_path / "other")

    def test_two_networks_share_the_image_of_a_visit(self, tmp_path):
        write(tmp_path / "raw", ["sub-01/anat/sub-01_FLAIR.nii.gz"])
        scans = scans_of(tmp_path / "net", [f"sub-01/anat/sub-01_desc-{n}_probseg.nii.gz" for n in "ab"])
        assert set(pairs(scans, tmp_path / "raw", "image").values()) == {"sub-01/anat/sub-01_FLAIR.nii.gz"}

    @pytest.mark.usefixtures("scans")
    def test_flat_maps_find_masks_in_a_tree(self, tmp_path):
        flat = scans_of(tmp_path / "flat", [f"sub-{sub}_ses-{ses}.nii.gz" for sub, ses in self.VISITS])
        found = list(pairs(flat, tmp_path / "experts").values())
        assert found == [mask for _, mask in self.expected("label-lesion_mask")]


class TestLstAi:
    """A folder per patient; all files are called sub-X_ses-Y, whosever they are."""

    MAP = "{}/temp/sub-X_ses-Y_space-FLAIR_seg-lst_prob.nii.gz"

    @pytest.mark.parametrize("patients", [("sub-01", "sub-02"), ("Doe", "Roe")])
    def test_the_placeholder_is_nobody(self, tmp_path, patients):
        maps = [self.MAP.format(patient) for patient in patients]
        write(tmp_path / "lst", [f"{one}/space-flair_seg-lst.nii.gz" for one in patients])
        scans = scans_of(tmp_path / "lst", maps, suffix="_prob")
        assert [scan.whose.participant for scan in scans] == [p if p.startswith("sub-") else None for p in patients]
        write(tmp_path / "truth", [f"{patients[1]}/temp/sub-X_ses-Y_space-FLAIR_seg-lst_prob.nii.gz"])
        assert list(pairs(scans, tmp_path / "truth").values()) == [None, maps[1]]

    def test_images_by_pattern(self, tmp_path):
        scans = scans_of(
            tmp_path / "lst", [self.MAP.format(one) for one in ("Doe", "Roe")], name_pattern="^(?P<participant>[^/]+)/"
        )
        write(tmp_path / "mri", ["Doe_FLAIR.nii.gz", "Roe_FLAIR.nii.gz"])
        found = pairs(scans, tmp_path / "mri" / "{participant}_FLAIR.nii.gz", "image")
        assert list(found.values()) == ["Doe_FLAIR.nii.gz", "Roe_FLAIR.nii.gz"]

    def test_masks_by_folder_of_bids(self, tmp_path):
        scans = scans_of(tmp_path / "lst", [self.MAP.format(f"sub-0{n}") for n in (1, 2)])
        write(tmp_path / "experts", [f"sub-0{n}/anat/sub-0{n}_mask.nii.gz" for n in (1, 2)])
        assert list(pairs(scans, tmp_path / "experts").values()) == [
            f"sub-0{n}/anat/sub-0{n}_mask.nii.gz" for n in (1, 2)
        ]


class TestSct:
    """Spinal Cord Toolbox: the name of the image goes on, and labels lie in a tree of their own."""

    @pytest.fixture
    def scans(self, tmp_path):
        subjects = ("sub-001", "sub-002")
        write(tmp_path / "data", [f"{one}/anat/{one}_T2w.nii.gz" for one in subjects])
        kinds = ("lesion-manual", "seg-manual")
        write(tmp_path / "labels", [f"{one}/anat/{one}_T2w_{kind}.nii.gz" for one in subjects for kind in kinds])
        return scans_of(tmp_path / "out", [f"{one}/anat/{one}_T2w_lesionprob.nii.gz" for one in subjects])

    def test_lesions_are_not_taken_for_the_cord(self, scans, tmp_path):
        with pytest.raises(MapFileError, match="Which is the truth of"):
            pairs(scans, tmp_path / "labels")
        found = pairs(scans, tmp_path / "labels", suffix="_lesion-manual")
        assert list(found.values()) == [f"{one}/anat/{one}_T2w_lesion-manual.nii.gz" for one in ("sub-001", "sub-002")]

    def test_images_are_those_of_the_subject(self, scans, tmp_path):
        found = pairs(scans, tmp_path / "data", "image")
        assert list(found.values()) == [f"{one}/anat/{one}_T2w.nii.gz" for one in ("sub-001", "sub-002")]

    def test_single_files_have_their_suffix_replaced(self, tmp_path):
        scans = scans_of(tmp_path / "one", ["t2_lesionprob.nii.gz"])
        write(tmp_path / "gt", ["t2_lesion.nii.gz", "t2_seg.nii.gz"])
        assert pairs(scans, tmp_path / "gt", suffix="_lesion") == {"t2_lesionprob.nii.gz": "t2_lesion.nii.gz"}


class TestTotalSegmentator:
    """A folder per case, and the same names in all of them."""

    @pytest.fixture
    def scans(self, tmp_path):
        write(tmp_path / "ct", [f"s000{n}/ct.nii.gz" for n in (1, 2)])
        maps = [f"s000{n}/segmentations/liver_lesions.nii.gz" for n in (1, 2)]
        return scans_of(tmp_path / "seg", maps, name_pattern=r"(?P<participant>s\d{4})")

    def test_images_by_pattern(self, scans, tmp_path):
        found = pairs(scans, tmp_path / "ct" / "{participant}" / "ct.nii.gz", "image")
        assert list(found.values()) == ["s0001/ct.nii.gz", "s0002/ct.nii.gz"]

    def test_without_a_pattern_nothing_is_guessed(self, scans, tmp_path):
        with pytest.raises(
            MapFileError, match=r"no image of any scan .*liver_lesions and 1 more.* It holds .*ct\.nii\.gz"
        ):
            pairs(scans, tmp_path / "ct", "image")

    def test_the_same_name_in_the_folder_of_another_case_is_not_taken(self, scans, tmp_path):
        write(tmp_path / "truth", ["s0002/segmentations/liver_lesions.nii.gz"])
        assert list(pairs(scans, tmp_path / "truth").values()) == [None, "s0002/segmentations/liver_lesions.nii.gz"]
        assert list(pairs(scans[1:], tmp_path / "truth").values()) == ["s0002/segmentations/liver_lesions.nii.gz"]
        with pytest.raises(MapFileError, match="no truth of any scan"):
            pairs(scans[:1], tmp_path / "truth")


class TestHospitalFolders:
    """An export by patient, study date and series."""

    @pytest.fixture
    def scans(self, tmp_path):
        maps = [
            "PAT 12/20240131/T2 FLAIR/prob.nii.gz",
            "PAT 12/20250203/T2 FLAIR/prob.nii.gz",
            "PAT 7/20240131/x/prob.nii.gz",
        ]
        return scans_of(tmp_path / "in", maps, name_pattern=r"^(?P<participant>[^/]+)/(?P<session>\d{8})/")

    def test_masks_in_the_same_places(self, scans, tmp_path):
        masks = [scan.relative.as_posix() for scan in scans]
        write(tmp_path / "masks", masks)
        assert list(pairs(scans, tmp_path / "masks").values()) == masks

    def test_masks_by_pattern_of_patient_and_date(self, scans, tmp_path):
        write(tmp_path / "m", ["PAT 12_20240131.nii.gz", "PAT 12_20250203.nii.gz", "PAT 7_20240131.nii.gz"])
        found = pairs(scans, tmp_path / "m" / "{participant}_{session}.nii.gz", "mask")
        assert list(found.values()) == ["PAT 12_20240131.nii.gz", "PAT 12_20250203.nii.gz", "PAT 7_20240131.nii.gz"]

    def test_one_file_for_the_name_of_all_is_no_pair(self, scans, tmp_path):
        write(tmp_path / "m", ["prob.nii.gz"])
        with pytest.raises(MapFileError, match="no mask of any scan"):
            pairs(scans, tmp_path / "m", "mask")

    def test_wildcards_must_mean_one_file(self, scans, tmp_path):
        write(tmp_path / "m", ["PAT 12_20240131_a.nii.gz", "PAT 12_20240131_b.nii.gz"])
        with pytest.raises(MapFileError, match=r"2 that may be: .*_a\.nii\.gz, .*_b\.nii\.gz"):
            pairs(scans, tmp_path / "m" / "{participant}_{session}_*.nii.gz", "mask")

    def test_one_scan_does_not_take_the_mask_of_another_patient(self, tmp_path):
        write(tmp_path / "in", ["PAT1/prob.nii.gz"])
        path = tmp_path / "in" / "PAT1" / "prob.nii.gz"
        scan = ScanFiles("prob", path, relative=PurePosixPath("prob.nii.gz"))
        write(tmp_path / "masks", ["PAT2/prob.nii.gz"])
        with pytest.raises(MapFileError, match="no mask of any scan"):
            pairs([scan], tmp_path / "masks", "mask")
        write(tmp_path / "masks", ["PAT1/prob.nii.gz"])
        assert pairs([scan], tmp_path / "masks", "mask") == {"prob.nii.gz": "PAT1/prob.nii.gz"}


class TestHospitalNames:
    """A flat export: patient number, accession number, kind."""

    @pytest.fixture
    def scans(self, tmp_path):
        return scans_of(tmp_path / "in", ["1001_A9_prob.nii.gz", "1001_A91_prob.nii.gz", "2002_A7_prob.nii.gz"])

    def test_suffixes_are_replaced_or_appended(self, scans, tmp_path):
        write(tmp_path / "replaced", ["1001_A9_mask.nii.gz", "1001_A91_mask.nii.gz", "2002_A7_mask.nii.gz"])
        found = pairs(scans, tmp_path / "replaced", suffix="_mask")
        assert list(found.values()) == ["1001_A91_mask.nii.gz", "1001_A9_mask.nii.gz", "2002_A7_mask.nii.gz"]
        write(tmp_path / "appended", [f"{scan.name}_mask.nii.gz" for scan in scans])
        found = pairs(scans, tmp_path / "appended", suffix="_mask")
        assert list(found.values()) == [f"{scan.name}_mask.nii.gz" for scan in scans]

    def test_a_mask_of_the_patient_is_not_that_of_an_examination(self, scans, tmp_path):
        write(tmp_path / "m", ["1001_mask.nii.gz", "2002_mask.nii.gz"])
        with pytest.raises(MapFileError, match="no truth of any scan"):
            pairs(scans, tmp_path / "m", suffix="_mask")

    def test_a_suffix_that_two_maps_share_is_an_error(self, tmp_path):
        scans = scans_of(tmp_path / "two", ["1001_A9_net1.nii.gz", "1001_A9_net2.nii.gz"])
        write(tmp_path / "m", ["1001_A9_mask.nii.gz"])
        with pytest.raises(MapFileError, match="would be the truth of both 1001_A9_net1 and 1001_A9_net2"):
            pairs(scans, tmp_path / "m", suffix="_mask")

    def test_masks_sorted_into_folders(self, scans, tmp_path):
        write(
            tmp_path / "m", ["batch1/1001_A9_prob.nii.gz", "batch2/1001_A91_prob.nii.gz", "batch2/2002_A7_prob.nii.gz"]
        )
        assert sorted(pairs(scans, tmp_path / "m").values()) == [
            "batch1/1001_A9_prob.nii.gz", "batch2/1001_A91_prob.nii.gz", "batch2/2002_A7_prob.nii.gz"
        ]  # fmt: skip
        write(tmp_path / "m", ["batch3/2002_A7_prob.nii.gz"])
        with pytest.raises(MapFileError, match="Which is the truth of 2002_A7_prob"):
            pairs(scans, tmp_path / "m")


@pytest.mark.parametrize(
    "text", ["m/{participant.x}.nii", "m/{}.nii", "m/{name!r}.nii", "m/{name:3}.nii", "m/{name}{.nii"]
)
def test_patterns_with_other_fields_are_refused(tmp_path, text):
    scans = scans_of(tmp_path / "in", ["a.nii.gz"])
    with pytest.raises(MapFileError, match=r"a field that is none|is not a pattern|does not exist"):
        pairs(scans, tmp_path / text, role="mask")


@pytest.mark.parametrize(
    ("field", "why"), [("session", "no scan has one"), ("patient", "there is no such field"), ("run", "no such field")]
)
def test_fields_that_no_scan_has_are_named(tmp_path, field, why):
    scans = scans_of(tmp_path / "in", ["sub-01.nii.gz"])
    with pytest.raises(MapFileError, match=rf"has the field {{{field}}}, but .*{why}.*--name-pattern"):
        pairs(scans, tmp_path / "m" / f"{{{field}}}.nii.gz", role="image")
    with pytest.raises(MapFileError, match=r"no file is meant by .*/m/{participant}\.nii\.gz"):
        pairs(scans, tmp_path / "m" / "{participant}.nii.gz", role="image")


def test_images_that_match_nothing_end_the_run_before_it_counts(tmp_path, rng, capsys):
    for name in ("a", "b"):
        save(tmp_path / "in" / f"{name}.nii.gz", rng.random((4, 5, 6)).astype(np.float32))
        save(tmp_path / "flair" / f"{name}_x.nii.gz", rng.random((4, 5, 6)).astype(np.float32))
    arguments = ["count", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--images", str(tmp_path / "flair")]
    assert main(arguments) == 2
    assert "There is no image of any scan (a and 1 more)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*arguments, "--images-suffix", "_x", "--quiet"]) == 0


def test_images_that_are_missing_are_said(tmp_path, rng, capsys):
    for name in ("a", "b"):
        save(tmp_path / "in" / f"{name}.nii.gz", rng.random((4, 5, 6)).astype(np.float32))
    save(tmp_path / "flair" / "a.nii.gz", rng.random((4, 5, 6)).astype(np.float32))
    arguments = ["count", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--images", str(tmp_path / "flair")]
    assert main(arguments) == 0
    assert "note: 1 of 2 scans have no image in" in capsys.readouterr().out


def test_masks_and_truth_by_pattern_from_the_command_line(tmp_path, rng):
    for n in (1, 2, 3):
        p = rng.random((6, 6, 6)).astype(np.float32)
        save(tmp_path / "in" / f"sub-0{n}" / "prob.nii.gz", p)
        save(tmp_path / "brain" / f"0{n}.nii.gz", np.ones((6, 6, 6), np.uint8))
        save(tmp_path / "truth" / f"sub-0{n}_mask.nii.gz", (p > 0.9).astype(np.uint8))
    out = str(tmp_path / "out")
    brains = str(tmp_path / "brain" / "{participant}.nii.gz")
    assert main(["count", str(tmp_path / "in"), "-o", out, "--mask", brains, "--quiet"]) == 0
    for n, truth in enumerate((tmp_path / "truth", tmp_path / "truth" / "{participant}_mask.nii.gz")):
        assert main(["evaluate", out, "--truth", str(truth), "-o", str(tmp_path / f"e{n}"), "--quiet"]) == 0
    scans = [(tmp_path / f"e{n}" / "scans.tsv").read_text() for n in (0, 1)]
    assert scans[0] == scans[1]
