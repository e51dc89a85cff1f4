"""Which maps belong together: as names, sessions or a table say, and never by guess."""

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cohort.courses import CourseSelection
from lesioncount.cohort.scans import Selection
from lesioncount.errors import MapFileError


@pytest.fixture
def touch(tmp_path):
    def touch(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
        return tmp_path

    return touch


def found(root, *inputs, sessions=(), pairs=None, mask=None, **selection):
    """Names of courses → their sessions with the paths of the maps below the root; and who is alone."""
    chosen = CourseSelection(Selection(**selection), pairs=pairs, sessions=sessions)
    courses = chosen.find([root / one for one in inputs], root / "out", mask=mask)
    by_name = {
        course.name: {
            session: scan.path.absolute().relative_to(root).as_posix()
            for session, scan in zip(course.sessions, course.scans, strict=True)
        }
        for course in courses.courses
    }
    return by_name, list(courses.alone)


class TestFoldersForEachTime:
    def test_maps_of_the_same_name_are_of_one_patient(self, touch):
        root = touch("m0/p1.nii.gz", "m0/p2.nii.gz", "m6/p1.nii.gz", "m6/p2.nii.gz")
        assert found(root, "m0", "m6") == (
            {"p1": {"1": "m0/p1.nii.gz", "2": "m6/p1.nii.gz"}, "p2": {"1": "m0/p2.nii.gz", "2": "m6/p2.nii.gz"}},
            [],
        )

    def test_the_order_is_that_of_the_folders(self, touch):
        root = touch("a/p1.nii.gz", "b/p1.nii.gz")
        assert found(root, "b", "a")[0] == {"p1": {"1": "b/p1.nii.gz", "2": "a/p1.nii.gz"}}

    def test_the_ending_is_not_part_of_the_name(self, touch):
        root = touch("a/p1.nii", "b/p1.nii.gz")
        assert list(found(root, "a", "b")[0]) == ["p1"]

    def test_maps_in_folders_of_patients(self, touch):
        root = touch("a/p1/prob.nii.gz", "a/p2/prob.nii.gz", "b/p1/prob.nii.gz", "b/p2/prob.nii.gz")
        assert list(found(root, "a", "b")[0]) == ["p1__prob", "p2__prob"]

    def test_participants_of_bids_need_no_equal_names(self, touch):
        root = touch("a/sub-01_ses-m0_probseg.nii.gz", "b/sub-01_ses-m6_probseg.nii.gz")
        assert found(root, "a", "b")[0] == {
            "sub-01": {"ses-m0": "a/sub-01_ses-m0_probseg.nii.gz", "ses-m6": "b/sub-01_ses-m6_probseg.nii.gz"}
        }

    def test_three_folders_are_three_times_of_which_one_may_be_missing(self, touch):
        root = touch("a/p1.nii", "b/p1.nii", "c/p1.nii", "a/p2.nii", "c/p2.nii", "b/p3.nii")
        assert found(root, "a", "b", "c") == (
            {"p1": {"1": "a/p1.nii", "2": "b/p1.nii", "3": "c/p1.nii"}, "p2": {"1": "a/p2.nii", "3": "c/p2.nii"}},
            ["p3"],
        )

    def test_who_has_one_map_only_is_named(self, touch):
        root = touch("a/p1.nii", "b/p1.nii", "a/p2.nii", "b/p3.nii")
        assert found(root, "a", "b")[1] == ["p2", "p3"]

    def test_names_that_are_nearly_the_same_are_not_paired(self, touch):
        root = touch("a/p1_baseline.nii", "b/p1_followup.nii")
        with pytest.raises(MapFileError, match=r"No patient has two maps.*of p1_baseline, p1_followup\..*--pairs"):
            found(root, "a", "b")

    def test_many_who_are_alone_are_not_all_listed(self, touch):
        root = touch(*(f"{when}/{when}{n}.nii" for when in "ab" for n in range(9)))
        with pytest.raises(MapFileError, match="a0, a1, a2, a3, a4 and 13 more"):
            found(root, "a", "b")

    def test_two_maps_of_one_patient_at_one_time_are_asked_about(self, touch):
        root = touch("a/sub-01_ses-1_probseg.nii", "a/sub-01_ses-2_probseg.nii", "b/sub-01_ses-3_probseg.nii")
        with pytest.raises(MapFileError, match=r"Which map is sub-01 at time 1:.*ses-1.*or.*ses-2.*--suffix"):
            found(root, "a", "b")

    def test_odd_names_are_names_all_the_same(self, touch):
        names = ["Jane Doe.nii", "übung.nii", "50%.nii", "a'b.nii", "[x].nii", "run.nii", "a__b.nii", "-x.nii"]
        root = touch(*(f"{when}/{name}" for when in "ab" for name in names))
        courses, alone = found(root, "a", "b")
        assert len(courses) == len(names)
        assert alone == []
        assert {"Jane%20Doe", "übung", "50%25", "%72un", "a_%5Fb"} <= set(courses)
        assert all("/" not in name for name in courses)

    def test_sessions_are_for_one_folder(self, touch):
        root = touch("a/p1.nii", "b/p1.nii")
        with pytest.raises(MapFileError, match="--sessions goes with one folder"):
            found(root, "a", "b", sessions=["1", "2"])

    def test_maps_in_a_folder_and_one_file(self, touch):
        root = touch("a/p1.nii", "a/p2.nii", "b/p1.nii")
        assert found(root, "a", "b/p1.nii") == ({"p1": {"1": "a/p1.nii", "2": "b/p1.nii"}}, ["p2"])

    def test_a_folder_whose_file_contradicts_it_is_a_problem_of_its_course(self, touch):
        root = touch("a/sub-01/sub-02_probseg.nii", "b/sub-01/sub-02_probseg.nii")
        courses = CourseSelection().find([root / "a", root / "b"]).courses
        assert "Its folder says sub-01, its name sub-02" in courses[0].problem


class TestTwoFiles:
    def test_two_files_are_put_together_whatever_their_names(self, touch):
        root = touch("x/before.nii.gz", "y/after.nii.gz")
        assert found(root, "x/before.nii.gz", "y/after.nii.gz")[0] == {
            "after": {"1": "x/before.nii.gz", "2": "y/after.nii.gz"}
        }

    def test_three_files_are_one_course(self, touch):
        root = touch("t1.nii", "t2.nii", "t3.nii")
        assert found(root, "t1.nii", "t2.nii", "t3.nii")[0] == {"t3": {"1": "t1.nii", "2": "t2.nii", "3": "t3.nii"}}

    def test_files_of_two_patients_are_refused(self, touch):
        root = touch("sub-01_probseg.nii", "sub-02_probseg.nii")
        with pytest.raises(MapFileError, match=r"sub-01_probseg.nii is of sub-01, but .*sub-02_probseg.nii of sub-02"):
            found(root, "sub-01_probseg.nii", "sub-02_probseg.nii")

    def test_two_sessions_of_one_patient_have_his_name(self, touch):
        root = touch("sub-01_ses-a_probseg.nii", "sub-01_ses-b_probseg.nii")
        assert list(found(root, "sub-01_ses-a_probseg.nii", "sub-01_ses-b_probseg.nii")[0].items()) == [
            ("sub-01", {"ses-a": "sub-01_ses-a_probseg.nii", "ses-b": "sub-01_ses-b_probseg.nii"})
        ]

    def test_a_file_that_is_not_there(self, touch):
        root = touch("a.nii")
        with pytest.raises(MapFileError, match=r"b\.nii does not exist"):
            found(root, "a.nii", "b.nii")

    def test_nothing_at_all(self, touch):
        with pytest.raises(MapFileError, match="BASELINE FOLLOWUP, one folder with sessions, or a table"):
            found(touch())


class TestOneFolderWithSessions:
    def maps(self, touch, *sessions, who=("01", "02")):
        return touch(*(f"d/sub-{p}/ses-{s}/anat/sub-{p}_ses-{s}_probseg.nii.gz" for p in who for s in sessions))

    def test_sessions_of_bids_in_the_order_of_their_numbers(self, touch):
        courses, _ = found(self.maps(touch, "10", "9", "01"), "d")
        assert {name: list(course) for name, course in courses.items()} == {
            "sub-01": ["ses-01", "ses-9", "ses-10"],
            "sub-02": ["ses-01", "ses-9", "ses-10"],
        }

    def test_months_are_numbers_too(self, touch):
        courses, _ = found(self.maps(touch, "m12", "m6", "m0"), "d")
        assert list(courses["sub-01"]) == ["ses-m0", "ses-m6", "ses-m12"]

    @pytest.mark.parametrize("sessions", [("pre", "post"), ("m6", "y1"), ("1", "x2"), ("1a", "1b"), ("1a2", "1a3")])
    def test_an_order_that_is_not_clear_is_asked_for(self, touch, sessions):
        root = self.maps(touch, *sessions)
        with pytest.raises(MapFileError, match=r"Which of the sessions .* comes first\?.*--sessions"):
            found(root, "d")
        courses, _ = found(root, "d", sessions=sessions)
        assert list(courses["sub-01"]) == [f"ses-{one}" for one in sessions]

    def test_one_number_written_in_two_ways_is_asked_about(self, touch):
        with pytest.raises(MapFileError, match=r"Which of the sessions 01, 1 comes first\?"):
            found(self.maps(touch, "1", "01"), "d")

    def test_some_sessions_in_an_order_of_ones_own(self, touch):
        root = self.maps(touch, "1", "2", "3")
        assert list(found(root, "d", sessions=["3", "ses-1"])[0]["sub-01"]) == ["ses-3", "ses-1"]

    @pytest.mark.parametrize(
        ("sessions", "message"),
        [
            (["1", "7"], "there is no session '7'. The maps have the sessions 1, 2"),
            (["1"], "one is not enough"),
            (["1", "ses-1"], "'1' is given twice"),
            (["1", "2", "1"], "'1' is given twice"),
        ],
    )
    def test_sessions_that_cannot_be_compared(self, touch, sessions, message):
        with pytest.raises(MapFileError, match=message):
            found(self.maps(touch, "1", "2"), "d", sessions=sessions)

    def test_who_has_one_session_only_is_alone(self, touch):
        root = self.maps(touch, "1", "2")
        touch("d/sub-03/ses-1/anat/sub-03_ses-1_probseg.nii.gz")
        assert found(root, "d")[1] == ["sub-03"]

    def test_nobody_with_two_sessions(self, touch):
        with pytest.raises(MapFileError, match=r"No patient has two maps.*one map only of sub-01, sub-02"):
            found(self.maps(touch, "1"), "d")

    def test_maps_of_nobody_are_asked_about(self, touch):
        root = touch("d/p1.nii.gz", "d/p2.nii.gz")
        with pytest.raises(MapFileError, match=r"Whose scan is .*p1\.nii\.gz, and when was it made\?.*--name-pattern"):
            found(root, "d")

    def test_a_folder_that_contradicts_its_file_is_said(self, touch):
        root = touch("d/sub-01/ses-1/sub-01_ses-2_probseg.nii", "d/sub-01/ses-3/sub-01_ses-3_probseg.nii")
        with pytest.raises(MapFileError, match="Its folder says ses-1, its name ses-2"):
            found(root, "d")

    def test_two_maps_of_one_session_are_asked_about(self, touch):
        root = self.maps(touch, "1", "2")
        touch("d/sub-01/ses-1/anat/sub-01_ses-1_run-2_probseg.nii.gz")
        with pytest.raises(MapFileError, match=r"Which map is session ses-1 of sub-01: .* or .*\? Choose"):
            found(root, "d")

    def test_a_pattern_finds_patients_and_visits(self, touch):
        root = touch("d/anna_v1.nii", "d/anna_v2.nii", "d/ben_v1.nii", "d/ben_v2.nii")
        courses, _ = found(root, "d", name_pattern=r"(?P<participant>[a-z]+)_v(?P<session>\d)")
        assert courses == {
            "anna": {"1": "d/anna_v1.nii", "2": "d/anna_v2.nii"},
            "ben": {"1": "d/ben_v1.nii", "2": "d/ben_v2.nii"},
        }

    def test_a_suffix_chooses_among_maps(self, touch):
        root = self.maps(touch, "1", "2")
        touch(*(f"d/sub-01/ses-{s}/anat/sub-01_ses-{s}_other.nii.gz" for s in "12"))
        courses, _ = found(root, "d", suffix="_probseg")
        assert all(path.endswith("_probseg.nii.gz") for path in courses["sub-01"].values())


class TestTableOfPairs:
    def table(self, root, text, name="pairs.csv"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
        return root / name

    def test_pairs_are_those_of_the_table(self, touch):
        root = touch("x/a.nii", "x/b.nii", "x/c.nii")
        table = self.table(root, "baseline,followup\nx/a.nii,x/b.nii\nx/a.nii,x/c.nii\n")
        assert found(root, pairs=table)[0] == {
            "b": {"1": "x/a.nii", "2": "x/b.nii"},
            "c": {"1": "x/a.nii", "2": "x/c.nii"},
        }

    @pytest.mark.parametrize("between", [",", "\t", ";"])
    def test_cells_may_be_separated_in_any_way(self, touch, between):
        root = touch("a.nii", "b.nii")
        rows = [["followup", "note", "baseline"], ["b.nii", "x", "a.nii"], ["", "", ""]]
        table = self.table(root, "\n".join(between.join(row) for row in rows))
        assert found(root, pairs=table)[0] == {"b": {"1": "a.nii", "2": "b.nii"}}

    def test_paths_begin_at_the_folder_of_the_table(self, touch, monkeypatch):
        root = touch("study/tables/x.csv", "study/maps/a.nii", "study/maps/b.nii")
        monkeypatch.chdir(root)
        table = self.table(root, "baseline,followup\n../maps/a.nii,../maps/b.nii\n", "study/tables/x.csv")
        courses = CourseSelection(pairs=table).find([]).courses
        assert [scan.path.resolve() for scan in courses[0].scans] == [
            root / "study/maps/a.nii",
            root / "study/maps/b.nii",
        ]

    def test_paths_may_begin_at_the_current_folder(self, touch, monkeypatch):
        root = touch("a.nii", "b.nii")
        table = self.table(root, "baseline,followup\na.nii,b.nii\n", "elsewhere/pairs.csv")
        monkeypatch.chdir(root)
        assert list(found(root, pairs=table)[0]) == ["b"]

    def test_one_map_written_in_two_ways(self, touch):
        root = touch("x/a.nii", "x/b.nii", "x/c.nii")
        table = self.table(root, f"baseline,followup\nx/a.nii,x/b.nii\nx/../x/a.nii,{root}/x/c.nii\n")
        courses = CourseSelection(pairs=table).find([]).courses
        assert [[scan.path.resolve().name for scan in one.scans] for one in courses] == [
            ["a.nii", "b.nii"],
            ["a.nii", "c.nii"],
        ]

    def test_a_participant_of_the_table(self, touch):
        root = touch("a.nii", "b.nii")
        table = self.table(root, "baseline,followup,participant_id\na.nii,b.nii,P 7\n")
        courses = CourseSelection(pairs=table).find([]).courses
        assert (courses[0].name, courses[0].participant, courses[0].sessions) == ("P%207", "P 7", ("1", "2"))

    def test_several_pairs_of_one_participant_are_told_apart_by_their_sessions(self, touch):
        root = touch(*(f"sub-01_ses-{n}_probseg.nii" for n in (1, 2, 3)))
        rows = "".join(f"sub-01_ses-{n}_probseg.nii,sub-01_ses-{n + 1}_probseg.nii\n" for n in (1, 2))
        courses = CourseSelection(pairs=self.table(root, f"baseline,followup\n{rows}")).find([]).courses
        assert [one.name for one in courses] == ["sub-01__ses-1__ses-2", "sub-01__ses-2__ses-3"]
        assert [one.pair_name(0) for one in courses] == ["sub-01__ses-1__ses-2", "sub-01__ses-2__ses-3"]

    def test_several_pairs_of_one_participant_without_sessions_are_called_after_the_last_map(self, touch):
        root = touch("a.nii", "b.nii", "c.nii")
        table = self.table(root, "baseline,followup,participant_id\na.nii,b.nii,p\nb.nii,c.nii,p\n")
        assert [one.name for one in CourseSelection(pairs=table).find([]).courses] == ["b", "c"]

    @pytest.mark.parametrize("rows", ["a.nii,c.nii,\nb.nii,c.nii,\n", "a.nii,b.nii,p\na.nii,b.nii,p\n"])
    def test_two_pairs_that_would_have_one_name_are_refused(self, touch, rows):
        root = touch("a.nii", "b.nii", "c.nii")
        table = self.table(root, f"baseline,followup,participant_id\n{rows}")
        with pytest.raises(MapFileError, match=r"would both be called [bc]: .*Compare them into two folders"):
            CourseSelection(pairs=table).find([])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("baseline,after\na.nii,b.nii\n", r"a column 'followup' in .*, but its columns are baseline, after"),
            ("baseline,baseline,followup\na.nii,a.nii,b.nii\n", "more than one column 'baseline'"),
            ("", "its columns are none"),
            ("baseline,followup\n", "has no pairs"),
            ("baseline,followup\na.nii,\n", "line 2: the row has no followup"),
            ("baseline,followup\na.nii\n", "line 2: the row has no followup"),
            ("baseline,followup\na.nii,z.nii\n", "the followup z.nii does not exist"),
            ("baseline,followup\na.nii,x\n", r"the followup x is a folder.*path of one map"),
        ],
    )
    def test_tables_that_cannot_be_used(self, touch, text, message):
        root = touch("a.nii", "b.nii", "x/a.nii")
        with pytest.raises(MapFileError, match=message):
            found(root, pairs=self.table(root, text))

    def test_a_table_that_is_not_there(self, tmp_path):
        with pytest.raises(MapFileError, match="cannot be read"):
            CourseSelection(pairs=tmp_path / "none.csv").find([])

    def test_a_pair_of_two_patients_is_refused(self, touch):
        root = touch("sub-01_probseg.nii", "sub-02_probseg.nii")
        table = self.table(root, "baseline,followup\nsub-01_probseg.nii,sub-02_probseg.nii\n")
        with pytest.raises(MapFileError, match=r"is of sub-01, but .* of sub-02"):
            found(root, pairs=table)

    def test_the_table_is_all_there_is(self, touch):
        root = touch("a.nii", "b.nii")
        table = self.table(root, "baseline,followup\na.nii,b.nii\n")
        with pytest.raises(MapFileError, match="leave the folders out, or --pairs"):
            found(root, "a.nii", "b.nii", pairs=table)
        with pytest.raises(MapFileError, match="--sessions"):
            found(root, pairs=table, sessions=["1", "2"])


def test_masks_belong_to_sessions(tmp_path):
    for who in ("01", "02"):
        for when in ("1", "2"):
            stem = f"sub-{who}/ses-{when}/anat/sub-{who}_ses-{when}"
            save(tmp_path / "maps" / f"{stem}_probseg.nii.gz", np.zeros((3, 3, 3), np.float32))
            if (who, when) != ("02", "1"):
                save(tmp_path / "masks" / f"{stem}_mask.nii.gz", np.ones((3, 3, 3), np.uint8))
    courses = CourseSelection().find([tmp_path / "maps"], mask=tmp_path / "masks").courses
    assert [scan.mask.name for scan in courses[0].scans] == ["sub-01_ses-1_mask.nii.gz", "sub-01_ses-2_mask.nii.gz"]
    assert courses[0].problem is None
    assert "There is no mask of this scan" in courses[1].problem


def test_names_of_pairs_and_sessions_are_names_of_files(touch):
    root = touch("d/anna A/v 1.nii", "d/anna A/v 2.nii")
    pattern = r"(?P<participant>[^/]+)/(?P<session>v \d)"
    course = CourseSelection(Selection(name_pattern=pattern)).find([root / "d"]).courses[0]
    assert course.name == "anna%20A"
    assert course.pair_name(0) == "anna%20A__v%201__v%202"
    assert course.session_name(1) == "anna%20A__v%202"
