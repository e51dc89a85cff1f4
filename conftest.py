"""What is not installed is not collected."""

from importlib.util import find_spec
from pathlib import Path

# Modules of learning/ that need more than numpy: the others also serve `lesioncount synthesize`.
_LEARNING = ("augmentation", "batches", "module", "prediction", "training", "voxel_f1")

_NEEDS = {
    "torch": [
        "src/lesioncount/torch/*",
        "src/lesioncount/integrations/*",
        "src/lesioncount/learning/networks/*",
        "tests/twin/toy_*",
    ],
    "torchmetrics": ["src/lesioncount/integrations/torchmetrics.py"],
    "monai": ["src/lesioncount/integrations/monai.py"],
    "lightning": [
        *(f"src/lesioncount/learning/{name}.py" for name in _LEARNING),
        "src/lesioncount/paper/samples.py",
        "src/lesioncount/paper/experiments/*",
        "tests/paper/experiments/fake_*",
    ],
    "starlette": ["src/lesioncount/review/server.py"],
    "statsmodels": ["src/lesioncount/trust/groups/rate_ratios.py"],
    "nnunetv2": ["src/lesioncount/integrations/nnunet/*"],
}
collect_ignore_glob = [path for package, paths in _NEEDS.items() if find_spec(package) is None for path in paths]

# Where another copy is installed, as from a wheel, that one is tested: the sources here may not even be compiled.
_SOURCES = Path(__file__).with_name("src") / "lesioncount"
_INSTALLED = find_spec("lesioncount")
if _INSTALLED is None or Path(_INSTALLED.origin or "").resolve().parent != _SOURCES.resolve():
    collect_ignore_glob.append("src/*")
