"""Finds the acpipe program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from acpipe._errors import AcpipeNotFound

BUNDLED = Path(__file__).parent / "_bin" / "acpipe"


def find_acpipe() -> str:
    """Returns the path of the acpipe program.

    The first of these that exists: the file that the environment variable `ACPIPE_BIN` names, the program inside the
    installed package, `acpipe` in `PATH`.
    """
    if named := os.environ.get("ACPIPE_BIN"):
        if not _is_executable(named):
            raise AcpipeNotFound(
                f"cannot start acpipe: ACPIPE_BIN is `{named}`, which is not an executable file; "
                "set it to the path of the acpipe program, or unset it"
            )
        return named
    if _is_executable(BUNDLED):
        return str(BUNDLED)
    if found := shutil.which("acpipe"):
        return found
    raise AcpipeNotFound(
        "cannot start acpipe: this package was installed without the program, and `acpipe` was not found in PATH; "
        "install acpipe, or set ACPIPE_BIN to the path of the program"
    )


def _is_executable(path: str | Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
