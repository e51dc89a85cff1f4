"""A small counted cohort, its page, and readers before it."""

import io
import time
from importlib.util import find_spec

import nibabel
import numpy as np
import pytest
from served_page import Server

SHAPE = (40, 48, 24)
# The first axis runs from right to left, the second from front to back: nothing may depend on the order in memory.
TURNED = np.array([[-2.0, 0, 0, 40], [0, -2.0, 0, 48], [0, 0, 3.0, -36], [0, 0, 0, 1]])


def blobs(rng, n):
    """A map with `n` candidates of one to eight voxels on a lattice, and an image in which they are bright."""
    places = [(x, y, z) for x in range(3, 37, 6) for y in range(3, 45, 6) for z in range(3, 22, 6)]
    probabilities = np.zeros(SHAPE, np.float32)
    for place in rng.permutation(len(places))[:n]:
        x, y, z = places[place]
        size = rng.integers(1, 3)
        probabilities[x : x + size, y : y + size, z : z + size] = rng.uniform(0.15, 0.98)
        probabilities[x, y, z] += 0.01
    image = (60 + 20 * rng.random(SHAPE) + 150 * (probabilities > 0)).astype(np.uint8)
    return probabilities, image


@pytest.fixture(scope="session")
def cohort(tmp_path_factory):
    """The folder of results, and the folder of images."""
    from lesioncount.cli import main

    rng = np.random.default_rng(17)
    folder = tmp_path_factory.mktemp("review")
    for name, n in (("scan-a", 35), ("scan-b", 6), ("scan-c", 3)):
        for kind, voxels in zip(("maps", "images"), blobs(rng, n), strict=True):
            path = folder / kind / f"{name}.nii.gz"
            path.parent.mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(voxels, TURNED), path)
    assert main(["count", str(folder / "maps"), "-o", str(folder / "out"), "--quiet"]) == 0
    return folder / "out", folder / "images"


@pytest.fixture(scope="module")
def viewer(browser):
    """The browser, where the page has pictures to show."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install {package}")
    from lesioncount.review.page_files import has_viewer

    if not has_viewer():
        pytest.skip("needs the bundle of the viewer: make page")
    return browser


@pytest.fixture(scope="module")
def server(cohort, viewer):  # noqa: ARG001 -- skips where there is none
    out, images = cohort
    with Server(out, "--images", images) as server:
        yield server


class Reader:
    """A person before the page: what is asked of it, and what it shows."""

    def __init__(self, browser, address, name, **options):
        self.context = browser.new_context(viewport={"width": 1200, "height": 800}, **options)
        self.page = self.context.new_page()
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)
        self.page.goto(address)
        if name:
            self.page.fill("#reader-name", name)
            self.page.keyboard.press("Enter")
            self.page.wait_for_selector(".cohort")

    def _note(self, message):
        if "Content Security Policy" in message.text or message.type == "error":
            self.errors.append(message.text)

    def until(self, expression, seconds=20):
        """Wait for a value: not with wait_for_function, which the policy of the page forbids."""
        end = time.monotonic() + seconds
        while not (value := self.page.evaluate(expression)):
            assert time.monotonic() < end, f"waited in vain for {expression}"
            time.sleep(0.02)
        return value

    def open_scan(self, name):
        self.page.click(f"a:text-is('{name}')")
        self.until("window.lesioncountReview.wholePicture")

    def press(self, keys):
        """Press keys of decisions, one after the other, and wait until each was drawn."""
        for key in keys:
            before = self.page.evaluate("window.lesioncountReview.redraws.length")
            self.page.keyboard.press(key)
            self.until(f"window.lesioncountReview.redraws.length > {before}")

    def verdicts(self):
        """What the list says about each candidate."""
        script = "rows => rows.map(row => [row.dataset.label, row.dataset.verdict])"
        rows = self.page.eval_on_selector_all("#list [data-label]", script)
        return {int(label): verdict for label, verdict in rows}

    def text(self, selector):
        return self.page.inner_text(selector)

    def current(self):
        return int(self.page.get_attribute("#list [aria-selected=true]", "data-label"))

    def at(self):
        return self.page.evaluate("window.lesioncountReview.picture.shown.at")

    def pixel(self, voxel, plane=0):
        """Where a voxel is on the screen, in one of the planes that are shown."""
        script = """([voxel, plane]) => {
          const { planes, top, scale } = window.lesioncountReview.picture;
          const box = top.getBoundingClientRect();
          const [x, y] = planes[plane].pixel(voxel);
          return [box.left + x / scale, box.top + y / scale];
        }"""
        return self.page.evaluate(script, [voxel, plane])

    def brightness(self, voxel, plane=0):
        """How bright the screen is where a voxel should be."""
        image = pytest.importorskip("PIL.Image")
        x, y = self.pixel(voxel, plane)
        shot = image.open(io.BytesIO(self.page.screenshot())).convert("L")
        return np.asarray(shot)[round(y), round(x)]

    def close(self):
        self.context.close()
        # Of a server that is gone, the browser notes so; the page has told it already.
        assert [error for error in self.errors if "net::ERR_CONNECTION" not in error] == []


@pytest.fixture
def reader(server, viewer, request):
    reader = Reader(viewer, server.address, request.node.name[:60])
    reader.name = request.node.name[:60]
    yield reader
    reader.close()


@pytest.fixture
def another(viewer):
    """Opens further pages, and closes them."""
    opened = []

    def another(address, name, **options):
        opened.append(Reader(viewer, address, name, **options))
        return opened[-1]

    yield another
    for reader in opened:
        reader.close()
