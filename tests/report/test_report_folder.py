"""The report of many scans: a page, and a folder of sections that are made once and kept while they are right."""

import json
import re

import nibabel as nib
import numpy as np
import pytest
from html_page import Page

from lesioncount.cli import main
from lesioncount.errors import MapFileError
from lesioncount.runs.count import count_batch

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from lesioncount.report import SectionWriter, write_report
from lesioncount.report.page import FEW

N_SCANS = 5


@pytest.fixture
def many(monkeypatch):
    """Three scans are many, so that tests take no time."""
    monkeypatch.setattr("lesioncount.report.page.FEW", 3)


@pytest.fixture
def maps(tmp_path):
    for scan in range(N_SCANS):
        save(tmp_path / "maps" / f"sub-{scan}.nii.gz", 0.5 + scan / 20)
    return tmp_path / "maps"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def save(path, peak):
    probabilities = np.zeros((9, 10, 11), np.float32)
    probabilities[3:5, 3:5, 3:5] = peak
    path.parent.mkdir(exist_ok=True)
    nib.Nifti1Image(probabilities, np.eye(4)).to_filename(path)


def section(out, scan):
    text = (out / "report" / f"{scan}.js").read_text("utf-8")
    return json.loads(re.search(r"lesioncountSection\((.*)\);\n", text)[1])


def times(out):
    return {path.name: path.stat().st_mtime_ns for path in [out / "report.html", *(out / "report").iterdir()]}


def test_up_to_forty_scans_are_one_file(maps, out):
    for scan in range(N_SCANS, FEW):
        save(maps / f"sub-{scan}.nii.gz", 0.5)
    assert main(["count", str(maps), "-o", str(out), "--report", "--quiet"]) == 0
    page = Page((out / "report.html").read_text("utf-8"))
    assert len(page.all("details")) == FEW == 40
    assert not (out / "report").exists()
    save(maps / "one-more.nii.gz", 0.5)
    assert main(["count", str(maps), "-o", str(out), "--report", "--resume", "--quiet"]) == 0
    assert len(list((out / "report").iterdir())) == FEW + 1


@pytest.mark.usefixtures("many")
def test_every_scan_has_a_section_of_its_own(maps, out):
    (maps / "broken.nii.gz").write_bytes(b"no map")
    count_batch([maps], out)
    page = Page(write_report(out).read_text("utf-8"))
    assert {path.name for path in (out / "report").iterdir()} == {f"sub-{scan}.js" for scan in range(N_SCANS)}
    assert not page.all("details")
    assert [row["data-name"] for row in page.all("tr") if "data-name" in row] == [f"sub-{i}" for i in range(N_SCANS)]
    content = section(out, "sub-3")
    assert content["scan"] == "sub-3"
    assert "1 lesion most likely" in content["summary"]
    assert len(Page(content["body"]).all("article")) == 1


@pytest.mark.usefixtures("many")
def test_pictures_are_made_while_maps_are_counted(maps, out):
    results = count_batch([maps], out, show=SectionWriter())
    for path in maps.iterdir():
        path.unlink()
    drawn = []
    page = Page(write_report(results, progress=lambda done, _: drawn.append(done)).read_text("utf-8"))
    assert drawn == []
    assert "could not be shown" not in page.text
    assert Page(section(out, "sub-0")["body"]).all("image")


def test_one_page_takes_the_pictures_that_were_made_while_counting(maps, out):
    results = count_batch([maps], out, show=SectionWriter())
    for path in maps.iterdir():
        path.unlink()
    page = Page(write_report(results).read_text("utf-8"))
    assert len(page.all("article")) == N_SCANS
    assert not (out / "report").exists()


@pytest.mark.usefixtures("many")
def test_both_ways_give_the_same_section(maps, out, tmp_path):
    count_batch([maps], out, show=SectionWriter())
    write_report(out)
    count_batch([maps], tmp_path / "later")
    write_report(tmp_path / "later", jobs=2)
    assert section(out, "sub-1") == section(tmp_path / "later", "sub-1")


@pytest.mark.usefixtures("many")
def test_nothing_is_written_when_nothing_changed(maps, out):
    count_batch([maps], out, show=SectionWriter())
    write_report(out)
    before = times(out)
    write_report(out)
    assert times(out) == before


def test_one_page_is_not_written_again_when_nothing_changed(maps, out):
    count_batch([maps], out)
    before = write_report(out).stat().st_mtime_ns
    for path in maps.iterdir():
        path.unlink()
    assert write_report(out).stat().st_mtime_ns == before
    assert "No pictures" not in (out / "report.html").read_text("utf-8")


@pytest.mark.usefixtures("many")
def test_only_what_changed_is_drawn_again(maps, out):
    count_batch([maps], out, show=SectionWriter())
    write_report(out)
    before = times(out)
    save(maps / "sub-2.nii.gz", 0.9)
    results = count_batch([maps], out, resume=True)
    drawn = []
    write_report(results, progress=lambda done, total: drawn.append((done, total)))
    assert drawn == [(1, 1)]
    changed = {name for name, time in times(out).items() if before[name] != time}
    assert changed == {"report.html", "sub-2.js"}


@pytest.mark.usefixtures("many")
def test_images_are_drawn_when_they_are_given_or_change(maps, out, tmp_path):
    count_batch([maps], out, show=SectionWriter())
    for scan in range(N_SCANS - 1):
        image = np.arange(9 * 10 * 11, dtype=np.int16).reshape(9, 10, 11)
        (tmp_path / "flair").mkdir(exist_ok=True)
        nib.Nifti1Image(image, np.eye(4)).to_filename(tmp_path / "flair" / f"sub-{scan}.nii.gz")
    drawn = []
    page = write_report(out, images=tmp_path / "flair", progress=lambda done, _: drawn.append(done))
    assert drawn == [1, 2, 3, 4, 5]
    assert "1 scan could not be shown as requested" in Page(page.read_text("utf-8")).text
    assert "data:image/jpeg" in section(out, "sub-0")["body"]
    assert "no image of this scan" in section(out, f"sub-{N_SCANS - 1}")["body"]
    nib.Nifti1Image(image[::-1].copy(), np.eye(4)).to_filename(tmp_path / "flair" / "sub-0.nii.gz")
    drawn.clear()
    write_report(out, images=tmp_path / "flair", progress=lambda done, _: drawn.append(done))
    assert drawn == [1]


@pytest.mark.usefixtures("many")
def test_counting_shows_images_at_once(maps, out, tmp_path):
    (tmp_path / "flair").mkdir()
    for path in maps.iterdir():
        nib.Nifti1Image(np.ones((9, 10, 11), np.uint8), np.eye(4)).to_filename(tmp_path / "flair" / path.name)
    flags = ["--report", "--images", str(tmp_path / "flair"), "--jobs", "2", "--quiet"]
    assert main(["count", str(maps), "-o", str(out), *flags]) == 0
    assert "on the image" in section(out, "sub-0")["body"]


@pytest.mark.usefixtures("many")
def test_files_of_others_stay_and_stale_ones_of_ours_go(maps, out):
    count_batch([maps], out, show=SectionWriter())
    write_report(out)
    (out / "report" / "mine.js").write_text("// a script of my own\n")
    (maps / "sub-4.nii.gz").unlink()
    write_report(count_batch([maps], out, overwrite=True))
    assert {path.stem for path in (out / "report").iterdir()} == {"mine", "sub-0", "sub-1", "sub-2", "sub-3"}
    assert (out / "report" / "mine.js").read_text() == "// a script of my own\n"


@pytest.mark.usefixtures("many")
def test_section_that_somebody_changed_is_not_replaced(maps, out):
    results = count_batch([maps], out)
    (out / "report").mkdir()
    (out / "report" / "sub-0.js").write_text("mine")
    with pytest.raises(MapFileError, match=r"sub-0\.js is not a result of an earlier run"):
        write_report(results)
    assert (out / "report" / "sub-0.js").read_text() == "mine"


@pytest.mark.usefixtures("many")
def test_folder_that_leads_elsewhere_is_refused(maps, out, tmp_path):
    results = count_batch([maps], out)
    (tmp_path / "elsewhere").mkdir()
    (out / "report").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MapFileError, match="is a link that leads out"):
        write_report(results)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.usefixtures("many")
def test_only_our_script_may_load_sections(maps, out):
    count_batch([maps], out)
    text = write_report(out).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert re.search(r"script-src 'sha256-[^ ;]+' 'strict-dynamic';", policy)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert len(Page(text).all("script")) == 1


def test_distribution_is_drawn_with_the_heights_it_has(maps, out):
    count_batch([maps], out)
    text = write_report(out).read_text("utf-8")
    bars = re.findall(r'<path d="(M[^"]*z)" fill="#0072b2"', text)[0]
    heights = [131 - float(top) for top in re.findall(r"131(?:\.0)?V([\d.]+)H", bars)]
    # 0.3 and 0.7 of the least certain scan but one are as 3 to 7; the highest bar leaves a twentieth of the room.
    assert max(heights) == pytest.approx((131 - 20) / 1.05, abs=0.1)
    assert len(heights) == 2


@pytest.mark.usefixtures("many")
def test_name_that_leads_out_of_the_folder_is_refused(maps, out):
    count_batch([maps], out)
    run = json.loads((out / "run.json").read_text("utf-8"))
    record = json.loads((out / "sub-0.json").read_text("utf-8")) | {"scan": "../sub-0"}
    del record["checksum"]
    (out.parent / "sub-0.json").write_text(json.dumps(record), "utf-8")
    run["inputs"][0]["scan"] = "../sub-0"
    (out / "run.json").write_text(json.dumps(run), "utf-8")
    with pytest.raises(MapFileError, match="leads out of"):
        write_report(out)
    assert not (out / "sub-0.js").exists()
    assert not (out / "report").exists()
