"""Finding the program, and the platform tag of a wheel."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from acpipe import AcpipeNotFound, Client, _binary, find_acpipe
from hatch_build import platform_tag


def program(path: Path) -> str:
    """Creates a file that can be executed."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole PATH, and a package without the program."""
    monkeypatch.delenv("ACPIPE_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_binary, "BUNDLED", tmp_path / "bundled")
    return tmp_path


def test_program_is_searched_in_the_variable_then_the_package_then_path(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_path = program(places / "acpipe")
    assert find_acpipe() == in_path
    bundled = program(places / "bundled")
    assert find_acpipe() == bundled
    named = program(places / "named")
    monkeypatch.setenv("ACPIPE_BIN", named)
    assert find_acpipe() == named


def test_variable_that_names_no_program_is_an_error(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(places / "acpipe")
    monkeypatch.setenv("ACPIPE_BIN", "/nowhere/acpipe")
    with pytest.raises(AcpipeNotFound, match="`/nowhere/acpipe`, which is not an executable file; set it"):
        find_acpipe()


async def test_missing_program_is_an_error_that_says_what_to_do(places: Path) -> None:
    with pytest.raises(AcpipeNotFound, match="not found in PATH; install acpipe, or set ACPIPE_BIN") as caught:
        await Client("demo").start()
    assert caught.value.kind == "acpipeNotFound"


async def test_program_that_cannot_be_executed_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "acpipe"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    with pytest.raises(AcpipeNotFound, match="failed to start: Exec format error"):
        await Client("demo", binary=broken).start()


def elf(machine: int, rest: bytes = b"") -> bytes:
    """Returns the beginning of a program for Linux."""
    return b"\x7fELF".ljust(18, b"\0") + machine.to_bytes(2, "little") + rest


def test_tag_names_the_newest_glibc_that_the_program_needs() -> None:
    assert platform_tag(elf(0x3E, b"GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0")) == "manylinux_2_34_x86_64"
    assert platform_tag(elf(0xB7, b"GLIBC_2.4\0")) == "manylinux_2_17_aarch64"


def test_static_program_fits_every_linux() -> None:
    assert platform_tag(elf(0x3E)) == "manylinux_2_17_x86_64.musllinux_1_1_x86_64"


def test_program_for_an_unknown_machine_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown machine 0xf3"):
        platform_tag(elf(0xF3))


def mach_o(processor: int, *commands: bytes) -> bytes:
    """Returns the beginning of a program for macOS."""
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, processor, 0, 2, len(commands), sum(map(len, commands)), 0, 0)
    return header + b"".join(commands)


def test_tag_names_the_oldest_macos_of_the_program() -> None:
    uuid = struct.pack("<II16x", 0x1B, 24)
    build_version = struct.pack("<IIIIII", 0x32, 24, 1, 11 << 16 | 2 << 8, 15 << 16, 0)
    assert platform_tag(mach_o(0x0100_000C, uuid, build_version)) == "macosx_11_0_arm64"
    version_min = struct.pack("<IIII", 0x24, 16, 10 << 16 | 12 << 8, 15 << 16)
    assert platform_tag(mach_o(0x0100_0007, uuid, version_min)) == "macosx_10_12_x86_64"


def test_program_of_an_unknown_kind_is_refused() -> None:
    for program, reason in [
        (b"#!/bin/sh\n", "neither for Linux nor"),
        (mach_o(0x7), "unknown processor 0x7"),
        (mach_o(0x0100_000C, struct.pack("<II16x", 0x1B, 24)), "does not name the oldest macOS"),
    ]:
        with pytest.raises(ValueError, match=reason):
            platform_tag(program)
