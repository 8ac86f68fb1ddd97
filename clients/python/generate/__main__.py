"""Command line of the generator."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from generate.calls import render_calls, render_sync_calls
from generate.models import render_models
from generate.schema import Document

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT.parent.parent / "schemas" / "openrpc.json"
PACKAGE = ROOT / "src" / "acpipe"


def render() -> dict[Path, str]:
    """Returns the content of each generated file."""
    document = Document(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return {
        PACKAGE / "models.py": render_models(document),
        PACKAGE / "_calls.py": render_calls(document),
        PACKAGE / "_sync_calls.py": render_sync_calls(document),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m generate")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    check = parser.parse_args().check
    stale = [path for path, text in render().items() if not path.exists() or path.read_text("utf-8") != text]
    if check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: run `python -m generate`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in render().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
