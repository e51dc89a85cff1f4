"""What is not installed is not collected."""

from importlib.util import find_spec

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
    "nnunetv2": ["src/lesioncount/integrations/nnunet/*"],
}
collect_ignore_glob = [path for package, paths in _NEEDS.items() if find_spec(package) is None for path in paths]
