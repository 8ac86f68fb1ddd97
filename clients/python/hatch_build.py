"""Places the acpipe program into the wheel.

`ACPIPE_WHEEL_BINARY=/path/to/acpipe python -m build --wheel` builds a wheel for the platform of that program. Without
the variable, the wheel has no program and fits every platform.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "ACPIPE_WHEEL_BINARY"
# Machine field of an ELF header.
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
# The oldest glibc that has a platform tag without a name of its own.
OLDEST_GLIBC = 17
# Field of the processor in the header of a program for macOS.
PROCESSORS = {0x0100_0007: "x86_64", 0x0100_000C: "arm64"}
# Load commands with the oldest macOS on which the program runs, and the offset of its version in them.
MINIMUM_MACOS = {0x24: 8, 0x32: 12}


class ProgramHook(BuildHookInterface[Any]):
    """Adds the program, a command that runs it, and the platform tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = os.environ.get(VARIABLE)
        if not named or version == "editable":
            return
        program = Path(named)
        # Builders change the directory, so a relative path would be searched in another place than its author means.
        if not program.is_absolute() or not program.is_file() or not os.access(program, os.X_OK):
            raise ValueError(
                f"cannot build the wheel: {VARIABLE} must be the absolute path of a program, not `{named}`"
            )
        build_data["force_include"][str(program)] = "acpipe/_bin/acpipe"
        license = program.with_name("LICENSE")
        if license.is_file():  # that of the program and of its libraries
            build_data["force_include"][str(license)] = "acpipe/_bin/LICENSE"
        build_data["shared_scripts"][str(Path(self.root, "bin", "acpipe"))] = "acpipe"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(program.read_bytes())}"


def platform_tag(program: bytes) -> str:
    """Returns the platforms on which a program runs, as the tag of a wheel."""
    if program.startswith(b"\x7fELF"):
        return linux_tag(program)
    if program.startswith(b"\xcf\xfa\xed\xfe"):
        return macos_tag(program)
    raise ValueError("cannot build the wheel: the program is neither for Linux nor for one processor of macOS")


def linux_tag(program: bytes) -> str:
    code = int.from_bytes(program[18:20], "little")
    if code not in MACHINES:
        raise ValueError(f"cannot build the wheel: the program is for the unknown machine {code:#x}")
    versions = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program)]
    glibc = f"manylinux_2_{max([OLDEST_GLIBC, *versions])}_{MACHINES[code]}"
    # A program without glibc is linked statically and runs on every Linux.
    return glibc if versions else f"{glibc}.musllinux_1_1_{MACHINES[code]}"


def macos_tag(program: bytes) -> str:
    code, count = struct.unpack_from("<4xI8xI", program)
    if code not in PROCESSORS:
        raise ValueError(f"cannot build the wheel: the program is for the unknown processor {code:#x}")
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", program, at)
        if command in MINIMUM_MACOS:
            (version,) = struct.unpack_from("<I", program, at + MINIMUM_MACOS[command])
            major, minor = version >> 16, version >> 8 & 0xFF
            # Since macOS 11, tags have the major version only.
            return f"macosx_{major}_{0 if major > 10 else minor}_{PROCESSORS[code]}"
        at += size
    raise ValueError("cannot build the wheel: the program does not name the oldest macOS on which it runs")
