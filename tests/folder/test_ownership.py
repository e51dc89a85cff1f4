"""Files of the user in the folder of results: only what a run has written is ever replaced."""

import json

import numpy as np
import pytest
from nifti_files import save

from lesioncount.cli import main


@pytest.fixture
def map_(tmp_path):
    return save(tmp_path / "scan.nii.gz", np.full((4, 5, 6), 0.3, dtype=np.float32))


@pytest.mark.parametrize("name", ["scan.json", "run.json", "counts.tsv", "lesions.tsv", "members.tsv"])
@pytest.mark.parametrize("content", ["[1, 2]", '{"format": 1}', '{"format": 1, "scan": "scan"}', "name\tage\n", ""])
@pytest.mark.parametrize("option", ["--overwrite", "--resume"])
def test_files_of_the_user_are_not_written_over(map_, tmp_path, capsys, name, content, option):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(content)
    assert main(["count", str(map_), "-o", str(out), option, "--quiet"]) == 2
    assert f"{name} is not a result of an earlier run" in capsys.readouterr().err
    assert (out / name).read_text() == content
    assert [path.name for path in out.iterdir()] == [name]


def test_a_record_of_ours_that_was_damaged_is_made_again(map_, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(map_), "-o", str(out), "--quiet"]) == 0
    whole = (out / "scan.json").read_text()
    (out / "scan.json").write_text(whole[:40])
    assert main(["count", str(map_), "-o", str(out), "--resume", "--quiet"]) == 0
    assert json.loads((out / "scan.json").read_text()) == json.loads(whole)


def test_overwriting_leaves_what_is_not_ours(map_, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(map_), "-o", str(out), "--quiet"]) == 0
    (out / "notes.json").write_text('{"format": 1, "scan": "notes"}')
    (out / "list.json").write_text("[1]")
    assert main(["count", str(map_), "-o", str(out), "--overwrite", "--quiet"]) == 0
    assert (out / "notes.json").read_text() == '{"format": 1, "scan": "notes"}'
    assert (out / "list.json").read_text() == "[1]"
