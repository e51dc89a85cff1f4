"""What is not installed is not collected."""

from importlib.util import find_spec

_NEEDS = {
    "torch": [
        "src/lesioncount/torch/*",
        "src/lesioncount/integrations/*",
        "src/lesioncount/models/*",
        "tests/twin/toy_*",
    ],
    "torchmetrics": ["src/lesioncount/integrations/torchmetrics.py"],
    "monai": ["src/lesioncount/integrations/monai.py"],
    "lightning": ["src/lesioncount/training/*", "src/lesioncount/experiments/*", "tests/experiments/fake_*"],
    "nnunetv2": ["src/lesioncount/integrations/nnunet/*"],
}
collect_ignore_glob = [path for package, paths in _NEEDS.items() if find_spec(package) is None for path in paths]
