#!/usr/bin/env python3
"""Records a session of acpipe at a terminal as docs/recording/session.svg.

    python3 docs/recording/record.py              runs target/debug/acpipe and writes the SVG
    python3 docs/recording/record.py --check      fails if the committed SVG is not what acpipe prints today

The commands run for real: acpipe with its demo agent, in a pseudo-terminal, with an empty state directory. Paths and
session ids are replaced by fixed ones, and the times of the animation are computed from the text, so that the same
output always gives the same file. Python 3.9+, standard library, Linux or macOS.
"""
import argparse
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
SVG = ROOT / "docs" / "recording" / "session.svg"
COLUMNS = 100
PROJECT = "/home/me/project"
SESSION = "run-19f3a2c07b"

# (command line, [(text to wait for, keys to type)])
SCENES = [
    (["acpipe", "run", "--agent", "demo", "--permissions", "ask", "list the files here"], [("(Enter refuses): ", "y\n")]),
    (["acpipe", "run", "-c", "hello again"], []),
]

CELL, LINE, MARGIN, TOP = 8.4, 19, 18, 44
COLORS = {"plain": "#d6deeb", "dim": "#8b98a9", "bold": "#ffffff", "prompt": "#7fdbca", "keys": "#ffcb6b", "code": "#82aaff"}


def shell_words(command):
    """The command line as a person types it."""
    return " ".join(f'"{word}"' if " " in word else word for word in command)


def play(acpipe, command, answers, cwd, home):
    """Runs one command in a pseudo-terminal and returns everything that the terminal receives."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        os.execve(acpipe, command, {**kept, "HOME": home, "TERM": "xterm-256color", "ACPIPE_NO_PATH_PROBE": "1"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    seen, awaited = b"", list(answers)
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:         # Linux: the last process at the terminal has exited
            piece = b""
        if not piece:
            break
        seen += piece
        if awaited and awaited[0][0].encode() in seen:
            os.write(terminal, awaited.pop(0)[1].encode())
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    if status or awaited:
        sys.exit(f"{shell_words(command)}: wait status {status}, not asked {awaited}, output:\n{seen.decode()}")
    return seen.decode()


def record(acpipe):
    """Returns [(command, answers, output)] of all scenes, without anything that differs from run to run."""
    with tempfile.TemporaryDirectory(prefix="acpipe-") as scratch:
        scratch = os.path.realpath(scratch)
        home, cwd = os.path.join(scratch, "home"), os.path.join(scratch, "project")
        os.makedirs(home)
        os.makedirs(os.path.join(cwd, "src"))
        for name in ("Cargo.toml", "README.md"):
            Path(cwd, name).touch()
        outputs = []
        for command, answers in SCENES:
            text = play(acpipe, command, answers, cwd, home)
            text = re.sub(r"run-[0-9a-f]{8,}", SESSION, text.replace(cwd, PROJECT))
            outputs.append((command, answers, text))
    return outputs


class Screen:
    """Places text on lines of COLUMNS cells, each piece with the time at which it appears."""

    def __init__(self):
        self.row, self.column, self.now = 0, 0, 0.6
        self.pieces = []        # (row, column, text, style, time)

    def put(self, text, style):
        """A piece without a line end. Lines are wrapped between pieces: easier to read than at the last column."""
        if self.column + len(text.rstrip()) > COLUMNS:
            self.newline()
            text = text.lstrip()
        if text.strip():
            self.pieces.append((self.row, self.column, text, style, round(self.now, 2)))
        self.column += len(text)

    def newline(self):
        self.row, self.column = self.row + 1, 0

    def type(self, keys, style):
        for key in keys:
            self.put(key, style)
            self.now += 0.045

    def output(self, text, answers):
        """Text of the terminal. The agent's text streams word by word; what acpipe prints appears line by line."""
        typed = [keys.rstrip("\n") for _, keys in answers]
        style = "plain"
        lines = text.replace("\r", "").split("\n")
        for number, line in enumerate(lines):
            answer = typed and re.match(r"(.*\(Enter refuses\): )(.*)$", line)
            if answer:          # the terminal echoes the answer
                self.put(answer[1], "plain")
                self.now += 1.6
                self.type(typed.pop(0), "keys")
                self.now += 0.5
            else:
                at_once = "\x1b" in line or line.startswith(("acpipe:", " "))
                for part in re.split(r"(\x1b\[[0-9;]*m)", line):
                    if part.startswith("\x1b"):
                        style = {"0": "plain", "1": "bold", "2": "dim", "36": "code"}[part[2:-1]]
                        continue
                    if "\x1b" in part:
                        sys.exit(f"a control sequence that this script does not know: {part!r}")
                    own = "dim" if style == "plain" and line.startswith("acpipe:") else style
                    for word in re.findall(r"\s*\S+\s*", part):
                        self.put(word, own)
                        self.now += 0 if at_once else 0.05
                self.now += 0.06
            if number + 1 < len(lines):
                self.newline()


def svg(scenes):
    screen = Screen()
    for command, answers, text in scenes:
        screen.put("$ ", "prompt")
        screen.now += 0.5
        screen.type(shell_words(command), "bold")
        screen.newline()
        screen.now += 0.6
        screen.output(text, answers)
        screen.now += 0.8
    screen.put("$ ", "prompt")
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = TOP + (screen.row + 1) * LINE + MARGIN
    title = "A session of acpipe at a terminal"
    commands = "; ".join(shell_words(command) for command, *_ in scenes)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title description">',
        f'<title id="title">{title}</title>',
        f'<desc id="description">{escape(commands)}</desc>',
        "<style>",
        "text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; "
        "white-space: pre; }",
        *(f".{name} {{ fill: {color}; }}" for name, color in COLORS.items()),
        ".bold { font-weight: bold; }",
        "@keyframes appear { from { opacity: 0; } }",
        # Without animations, and for readers who switched them off, everything is visible at once.
        "@media (prefers-reduced-motion: no-preference) { .at { animation: appear 10ms step-end backwards; } }",
        "</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#101823"/>',
        *(f'<circle cx="{24 + 20 * n}" cy="20" r="6" fill="{color}"/>'
          for n, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))),
    ]
    for row, column, text, style, time in screen.pieces:
        stripped = text.strip(" ")
        column += len(text) - len(text.lstrip(" "))
        x, y = round(MARGIN + column * CELL, 1), TOP + row * LINE + 14
        length = round(len(stripped) * CELL, 1)
        out.append(f'<text class="{style} at" x="{x:g}" y="{y}" textLength="{length:g}" '
                   f'lengthAdjust="spacingAndGlyphs" style="animation-delay: {time:g}s">{escape(stripped)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acpipe", default=ROOT / "target" / "debug" / "acpipe", metavar="PATH", type=Path,
                        help="the program to record (default: target/debug/acpipe)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the SVG would change")
    options = parser.parse_args()
    new = svg(record(str(options.acpipe.resolve())))
    if not options.check:
        SVG.write_text(new, encoding="utf-8")
        return 0
    if SVG.read_text(encoding="utf-8") == new:
        return 0
    print("docs/recording/session.svg is not current: run python3 docs/recording/record.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
