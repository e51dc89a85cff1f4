"""Names of scans: made of the path alone, one for each path, and undone."""

import json
import os
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nifti_files import save

from lesioncount.cli import main
from lesioncount.cohort.inputs import below, find_maps, root_of
from lesioncount.cohort.names import check_case, name_of, path_of
from lesioncount.cohort.scans import Selection
from lesioncount.errors import MapFileError
from lesioncount.runs import count_batch

# Parts of paths: those that people use, those that look like names in BIDS, and anything that a disk takes.
_BIDS = st.sampled_from(
    ["sub-01", "ses-01", "anat", "sub-01_ses-01_probseg", "sub-01_probseg", "sub-01__ses-01", "ses-01_probseg", "func"]
)
_CLOSE = st.text("ab_A%~. é=2", min_size=1, max_size=4)
_ANY = st.text(min_size=1, max_size=12) | st.text("xé", min_size=60, max_size=100)
_PARTS = (_BIDS | _CLOSE | _ANY).filter(
    lambda text: not text.startswith(".") and "/" not in text and "\0" not in text and not any(map(_is_surrogate, text))
)
_TREES = st.lists(st.lists(_PARTS, min_size=1, max_size=4).map(tuple), min_size=1, max_size=5, unique=True)


def _is_surrogate(character):
    return 0xD800 <= ord(character) < 0xE000


def _relative(parts):
    return PurePosixPath(*parts[:-1], f"{parts[-1]}.nii.gz")


def _named(tree):
    return {parts: name_of(_relative(parts)) for parts in tree}


@settings(max_examples=300, deadline=None)
@given(_TREES, _TREES)
@example([("a_b", "c"), ("a", "b_c"), ("a", "b", "c"), ("a__b__c",)], [("a_", "b"), ("a", "_b"), ("a___b",)])
@example([("sub-01", "anat", "sub-01_x"), ("anat", "sub-01_x"), ("sub-01_x",)], [("_a", "anat", "sub-01_x")])
@example([("_a", "sub-01", "anat", "sub-01_x")], [("_a", "anat", "sub-01_x"), ("run",), ("%72un",)])
def test_names_of_random_trees_are_unique_stable_and_lead_back(tree, added):
    names = _named(tree)
    assert len(set(names.values())) == len(tree)
    more = _named(dict.fromkeys([*tree, *added]))
    assert len(set(more.values())) == len(more)
    assert {parts: more[parts] for parts in tree} == names
    for parts, name in more.items():
        assert len(f"{name}_lesions.nii.gz".encode()) <= 255
        assert not set("/\0\n\t ") & set(name)
        assert name not in ("run", "participants", "dataset_description")
        assert path_of(name) == (None if "~" in name else PurePosixPath(*parts))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_BIDS, min_size=1, max_size=4).map(tuple), min_size=2, max_size=7, unique=True), st.data())
def test_files_on_disk_keep_their_names_when_scans_are_added(tmp_path_factory, tree, data):
    root, n_first = tmp_path_factory.mktemp("tree"), data.draw(st.integers(1, len(tree) - 1))

    def write(paths):
        for parts in paths:
            path = root / _relative(parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        found = Selection(suffix=".nii.gz").find([root], root / "out")
        return {scan.name: scan.path for scan in found}

    before = write(tree[:n_first])
    after = write(tree)
    assert set(after.values()) == {root / _relative(parts) for parts in tree}
    assert {name: after[name] for name in before} == before


def test_a_name_of_bytes_that_are_no_text_leads_back():
    relative = PurePosixPath(os.fsdecode(b"scan\xff 1.nii.gz"))
    assert name_of(relative) == "scan%FF%201"
    assert path_of("scan%FF%201") == PurePosixPath(os.fsdecode(b"scan\xff 1"))


@pytest.mark.parametrize(
    ("given", "root"),
    [
        (["cohort"], "cohort"),
        (["cohort/a"], "cohort/a"),
        (["cohort/sub-01"], "cohort"),
        (["cohort/sub-01/ses-02/prob.nii.gz"], "cohort"),
        (["cohort/a/x.nii.gz"], "cohort/a"),
        (["cohort/a/x.nii.gz", "cohort/b/x.nii.gz"], "cohort"),
        (["cohort/*/x.nii.gz"], "cohort"),
        (["cohort/a", "cohort/a/x.nii.gz"], "cohort/a"),
    ],
)
def test_names_begin_at_the_folder_that_was_given(tmp_path, monkeypatch, given, root):
    for folder in ("a", "b", "sub-01/ses-02"):
        (tmp_path / "cohort" / folder).mkdir(parents=True)
        (tmp_path / "cohort" / folder / "x.nii.gz").touch()
    (tmp_path / "cohort" / "sub-01" / "ses-02" / "prob.nii.gz").touch()
    monkeypatch.chdir(tmp_path)
    assert root_of(given) == tmp_path / root


def test_a_map_outside_of_the_root_is_named(tmp_path):
    with pytest.raises(MapFileError, match=r"x\.nii\.gz does not lie below .*/a, which names are to begin at"):
        below(tmp_path / "a", [tmp_path / "x.nii.gz"])


def test_names_that_differ_in_case_need_a_disk_that_tells_them_apart(tmp_path, monkeypatch):
    check_case(["A", "a"], tmp_path)
    monkeypatch.setattr("lesioncount.cohort.names._ignores_case", lambda _folder: True)
    check_case(["A", "b"], tmp_path)
    with pytest.raises(MapFileError, match="A and a differ only in case"):
        check_case(["A", "a"], tmp_path)


def _maps(root, paths, rng):
    for path in paths:
        save(root / path, (rng.random((4, 5, 6)) ** 3).astype(np.float32))


def _table(out):
    header, *lines = (out / "counts.tsv").read_text().splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_visits_of_patients_keep_their_names_when_a_patient_is_added(tmp_path, rng):
    root, out = tmp_path / "in", tmp_path / "out"
    _maps(root, [f"sub-0{n}/ses-01/prob.nii.gz" for n in (2, 3, 4)], rng)
    count_batch([root], out)
    before = {row["path"]: row for row in _table(out)}
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("sub-*.json")}
    _maps(root, ["sub-01/ses-01/prob.nii.gz"], rng)
    count_batch([root], out, resume=True)
    after = {row["path"]: row for row in _table(out)}
    assert [row["scan"] for row in after.values()] == [f"sub-0{n}__ses-01__prob" for n in (1, 2, 3, 4)]
    assert {path: after[path] for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert [(row["participant_id"], row["session_id"]) for row in after.values()] == [
        (f"sub-0{n}", "ses-01") for n in (1, 2, 3, 4)
    ]


def test_files_that_were_given_one_by_one_keep_their_names(tmp_path, rng):
    out = tmp_path / "out"
    _maps(tmp_path, ["p1/prob.nii.gz", "p2/prob.nii.gz"], rng)
    count_batch([tmp_path / "p1" / "prob.nii.gz"], out)
    count_batch([tmp_path / "p1" / "prob.nii.gz", tmp_path / "p2" / "prob.nii.gz"], out, resume=True)
    assert {row["path"]: row["scan"] for row in _table(out)} == {
        "p1/prob.nii.gz": "prob",
        "p2/prob.nii.gz": "p2__prob",
    }


def test_a_name_never_passes_to_another_file(tmp_path, rng, capsys):
    out = tmp_path / "out"
    _maps(tmp_path, ["a/prob.nii.gz", "b/prob.nii.gz"], rng)
    assert main(["count", str(tmp_path / "a"), "-o", str(out), "--quiet"]) == 0
    kept = (out / "prob.json").read_text()
    assert main(["count", str(tmp_path / "b"), "-o", str(out), "--quiet", "--resume"]) == 2
    assert "under the name prob, which" in capsys.readouterr().err
    assert (out / "prob.json").read_text() == kept
    assert main(["count", str(tmp_path / "b"), "-o", str(out), "--quiet", "--overwrite"]) == 0
    assert json.loads((out / "prob.json").read_text())["input"]["path"] == str(tmp_path / "b" / "prob.nii.gz")


def test_a_folder_that_was_moved_is_resumed(tmp_path, rng):
    out = tmp_path / "out"
    _maps(tmp_path, ["a/x/prob.nii.gz"], rng)
    count_batch([tmp_path / "a"], out)
    stamp = (out / "x__prob.json").stat().st_mtime_ns
    (tmp_path / "a").rename(tmp_path / "b")
    count_batch([tmp_path / "b"], out, resume=True)
    assert (out / "x__prob.json").stat().st_mtime_ns == stamp


def test_patterns_find_participants_and_sessions(tmp_path, rng, capsys):
    root, out = tmp_path / "in", tmp_path / "out"
    _maps(root, ["PAT 7/2024-01-31/prob.nii.gz", "PAT 8/2024-02-01/prob.nii.gz", "phantom/prob.nii.gz"], rng)
    pattern = r"(?P<participant>PAT \d+)/(?P<session>[\d-]+)"
    assert main(["count", str(root), "-o", str(out), "--name-pattern", pattern]) == 0
    assert "note: 1 of 3 scans are not matched by the name pattern: phantom__prob" in capsys.readouterr().out
    assert [(row["scan"], row["participant_id"], row["session_id"]) for row in _table(out)] == [
        ("PAT 7__2024-01-31__prob", "PAT 7", "2024-01-31"),
        ("PAT 8__2024-02-01__prob", "PAT 8", "2024-02-01"),
        ("phantom__prob", "n/a", "n/a"),
    ]
    lesions = (out / "lesions.tsv").read_text().splitlines()
    assert lesions[0].startswith("scan\tparticipant_id\tsession_id\tlabel")
    assert lesions[1].split("\t")[1] == "PAT 7"
    record = json.loads((out / "PAT%207__2024-01-31__prob.json").read_text())["input"]
    assert (record["participant_id"], record["relative"]) == ("PAT 7", "PAT 7/2024-01-31/prob.nii.gz")
    for wrong, message in (
        ("(", "not a regular expression"),
        ("PAT", "has none of them"),
        ("(?P<x>P)", "unknown group"),
    ):
        assert main(["count", str(root), "-o", str(out), "--overwrite", "--name-pattern", wrong]) == 2
        assert message in capsys.readouterr().err
    nothing = "(?P<participant>Q+)"
    assert main(["count", str(root), "-o", str(out), "--overwrite", "--name-pattern", nothing]) == 2
    assert "finds nothing in the path of any scan" in capsys.readouterr().err


def test_another_pattern_changes_what_a_resumed_run_says(tmp_path, rng):
    root, out = tmp_path / "in", tmp_path / "out"
    _maps(root, ["p1_v1.nii.gz", "p1_v2.nii.gz"], rng)
    count_batch([root], out)
    assert "participant_id" not in _table(out)[0]
    count_batch([root], out, resume=True, selection=Selection(name_pattern="(?P<participant>p[0-9])_(?P<session>v.)"))
    assert [(row["participant_id"], row["session_id"]) for row in _table(out)] == [("p1", "v1"), ("p1", "v2")]


def test_a_folder_and_a_file_that_say_different_patients_fail(tmp_path, rng):
    _maps(tmp_path / "in", ["sub-01/anat/sub-02_probseg.nii.gz", "sub-02/anat/sub-02_probseg.nii.gz"], rng)
    results = count_batch([tmp_path / "in"], tmp_path / "out")
    assert [scan.name for scan in results.counted] == ["anat__sub-02_probseg"]
    assert "Its folder says sub-01, its name sub-02" in results.failed[0].error
    assert _table(tmp_path / "out")[0]["path"] == "sub-01/anat/sub-02_probseg.nii.gz"


@pytest.fixture
def dataset(tmp_path, rng):
    """A derivative in the manner of BIDS: images, label maps and maps."""
    kinds = ["FLAIR", "desc-net_probseg", "desc-net_dseg", "label-brain_mask"]
    _maps(tmp_path / "bids", [f"sub-{n}/anat/sub-{n}_{kind}.nii.gz" for n in ("01", "02") for kind in kinds], rng)
    return tmp_path / "bids"


@pytest.mark.parametrize("is_described", [True, False])
def test_only_maps_of_a_bids_dataset_are_counted(dataset, is_described):
    if is_described:
        (dataset / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.10.0"}')
    names = [f"sub-{n}_desc-net_probseg.nii.gz" for n in ("01", "02")]
    assert [path.name for path in find_maps([dataset])] == names
    assert [path.name for path in find_maps([dataset / "sub-01"])] == names[:1]
    assert [path.name for path in find_maps([dataset], suffix="_FLAIR")] == [
        f"sub-{n}_FLAIR.nii.gz" for n in ("01", "02")
    ]


def test_a_dataset_without_maps_says_what_it_holds(dataset):
    (dataset / "dataset_description.json").write_text("{}")
    for path in dataset.rglob("*probseg*"):
        path.unlink()
    with pytest.raises(MapFileError, match=r"none of its files ends in _probseg. There is sub-01_.* and 5 more"):
        find_maps([dataset])
    with pytest.raises(MapFileError, match=r"No map in the folder .* ends in _prob \(--suffix\)"):
        find_maps([dataset], suffix="_prob")


def test_label_maps_that_we_wrote_elsewhere_are_not_counted(tmp_path, rng):
    _maps(tmp_path / "in", ["x.nii.gz"], rng)
    arguments = ["count", str(tmp_path / "in"), "--quiet", "--write=labels", "-o"]
    assert main([*arguments, str(tmp_path / "in" / "old")]) == 0
    assert main([*arguments, str(tmp_path / "in" / "new")]) == 0
    assert [row["scan"] for row in _table(tmp_path / "in" / "new")] == ["x"]
    with pytest.raises(MapFileError, match=r"no maps in the folder .* except results of lesioncount"):
        find_maps([tmp_path / "in" / "old"])


def test_members_are_matched_by_place_and_never_by_order(tmp_path, rng, capsys):
    for fold, subjects in (("f0", ("01", "02", "03")), ("f1", ("01", "03", "04"))):
        _maps(tmp_path / fold, [f"sub-{n}/prob.nii.gz" for n in subjects], rng)
    arguments = ["count", "--members", str(tmp_path / "f0"), str(tmp_path / "f1"), "-o", str(tmp_path / "out")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "f0 lacks sub-04__prob" in error
    assert "f1 lacks sub-02__prob" in error
    assert not (tmp_path / "out").exists()


def test_members_are_matched_by_entities(tmp_path, rng):
    for fold in ("f0", "f1"):
        paths = [f"sub-{n}/anat/sub-{n}_run-{run}_desc-{fold}_probseg.nii.gz" for n in ("01", "02") for run in (1, 2)]
        _maps(tmp_path / fold, paths, rng)
    results = count_batch([tmp_path / "f0", tmp_path / "f1"], tmp_path / "out", members=True)
    assert len(results.counted) == 4
    for scan in results.counted:
        first, second = (Path(path).name for path in scan.files.members)
        assert first.replace("desc-f0", "desc-f1") == second
