"""The examples of the README run as they are."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab import Lab

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PRINTED = [
    ["I am acpipe's demo agent"],
    ["[List files in ", "\nmy-chat demo list the files here 20"],
    ["{'files': 0}\nin the conversation: {'files': 0}\n"],
    ["I found nothing in ", "The agent asks: Edit demo.txt", "is_error=True"],
    ["\nend_turn\n"],
    ['"type":"tool-approval-request"', "I may edit demo.txt"],
    ["agentNotFound - "],
]
(TERMINAL,) = [example for example in EXAMPLES if "sys.stdin" in example]
(SYNC_TERMINAL,) = [example for example in EXAMPLES if "/dev/tty" in example]
(TESTS,) = [example for example in EXAMPLES if "import pytest" in example]
PROGRAMS = [example for example in EXAMPLES if example not in (TERMINAL, SYNC_TERMINAL, TESTS)]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_example_prints_what_it_should(lab: Lab, number: int) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAMS[number]],
        cwd=lab.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    for text in PRINTED[number]:
        assert text in result.stdout


def test_every_example_is_checked() -> None:
    assert len(PROGRAMS) == len(PRINTED)


def test_tests_of_an_app_pass_and_store_nothing_for_the_user(lab: Lab) -> None:
    (lab.project / "test_app.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py"]
    result = subprocess.run(command, cwd=lab.project, capture_output=True, text=True, timeout=60, check=False)
    assert "2 passed" in result.stdout
    assert not (lab.dir / "state").exists()


@contextmanager
def on_a_terminal(
    source: str, directory: Path, stdin: int | None = None
) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Runs a program on a terminal of its own, and yields the program and the other end of the terminal."""
    end, terminal = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", source],
        stdin=terminal if stdin is None else stdin,
        stdout=terminal,
        stderr=terminal,
        cwd=directory,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(terminal)
    try:
        yield program, end
    finally:
        program.kill()
        program.wait()
        os.close(end)


def read_until(end: int, text: str) -> str:
    """Returns the output of a program up to a text."""
    output = b""
    while text.encode() not in output:
        read = os.read(end, 4096)
        assert read, output
        output += read
    return output.decode()


@pytest.mark.parametrize("example", [TERMINAL, SYNC_TERMINAL])
@pytest.mark.parametrize(("typed", "printed"), [("y", "I may edit demo.txt now"), ("n", "The permission was refused")])
def test_example_asks_on_a_terminal(lab: Lab, example: str, typed: str, printed: str) -> None:
    with on_a_terminal(example, lab.project) as (program, end):
        read_until(end, "Edit demo.txt? [y/n] ")
        os.write(end, f"{typed}\n".encode())
        read_until(end, printed)
        assert program.wait(timeout=20) == 0


@pytest.mark.parametrize("example", [TERMINAL, SYNC_TERMINAL])
def test_ctrl_c_ends_the_example_that_asks_on_a_terminal(lab: Lab, example: str) -> None:
    with on_a_terminal(example, lab.project) as (program, end):
        read_until(end, "Edit demo.txt? [y/n] ")
        os.write(end, b"\x03")
        read_until(end, "KeyboardInterrupt")
        assert program.wait(timeout=20) == -signal.SIGINT


TWO_QUESTIONS = """
with Client("demo", permissions="reads", on_permission=ask_user) as client:
    turn = client.execute("edit a file")
    sys.stdin.readline()
    turn.cancel()
    turn.summary()
    print(client.execute("edit a file").summary().text)
"""


def test_closed_question_on_a_terminal_takes_no_line_of_the_next(lab: Lab) -> None:
    source = SYNC_TERMINAL[: SYNC_TERMINAL.index("with Client(")] + TWO_QUESTIONS
    with on_a_terminal(source, lab.project, stdin=subprocess.PIPE) as (program, end):
        assert program.stdin is not None
        read_until(end, "Edit demo.txt? [y/n] ")
        program.stdin.write(b"\n")
        program.stdin.close()
        read_until(end, "(no answer needed any more)\r\nEdit demo.txt? [y/n] ")
        os.write(end, b"y\n")
        read_until(end, "I may edit demo.txt now")
        assert program.wait(timeout=20) == 0
