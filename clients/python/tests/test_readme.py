"""The examples of the README run as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import Lab

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PRINTED = [
    "I am acpipe's demo agent",
    "[List files in ",
    "The agent asks: List files in ",
    "\nend_turn\n",
    "agentNotFound - ",
]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_prints_what_it_should(lab: Lab, number: int) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=lab.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    assert PRINTED[number] in result.stdout


def test_every_example_is_checked() -> None:
    assert len(EXAMPLES) == len(PRINTED)
