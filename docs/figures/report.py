"""Takes report.png, the picture of a report in the documentation: ``python docs/figures/report.py``. Needs chromium."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from lesioncount import demo
from lesioncount.cli import main as lesioncount

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import chromium

SCAN = "sub-141_ses-01"  # a sure lesion, and two candidates in doubt


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo.write_samples(folder)
        page_of_scan(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
        page = browser.new_page(viewport={"width": 820, "height": 900}, color_scheme="light")
        page.goto((Path(folder) / "out" / "report.html").as_uri())
        page.add_style_tag(content="p.path {display: none}")  # of a folder that is gone
        picture = page.locator("details").first.screenshot()
        browser.close()
    # Greys and a few colours: a palette is a third of the size.
    Image.open(io.BytesIO(picture)).quantize(160).save(Path(__file__).with_name("report.png"), optimize=True)


def page_of_scan(folder: Path) -> None:
    """Count the scan as the page tells to, on its image."""
    scan = (folder / "new" / f"{SCAN}.nii.gz").rename(folder / f"{SCAN}.nii.gz")
    lesioncount(["count", str(scan), "-o", str(folder / "out"), "--report", "--images", str(folder / "images")])


if __name__ == "__main__":
    main()
