"""What is not installed is not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/lesioncount/torch/*"]
