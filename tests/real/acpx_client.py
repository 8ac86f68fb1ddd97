"""acpx: a command for each call; a process of its own in the background keeps the agent of a session between prompts."""
import json
import os
import signal
import subprocess
import threading

import sandbox
from sdk_clients import Ended, Frames, chunks

LIMIT = 120     # seconds for one command
PROGRAM = "acpx/dist/cli.js"


class Prompt:
    """A turn: the command `acpx prompt`, which prints the JSON-RPC messages of its turn."""

    def __init__(self, client, name, text):
        self.client, self.frames = client, Frames()
        self.child = client.start("prompt", "-s", name, text)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            line = json.loads(line)
            self.client.trial.write_down("out", line)
            self.frames.put(line)
        self.frames.end()

    def messages(self):
        """Returns the messages after the prompt was sent, and those before."""
        lines = list(self.frames.lines)
        at = next((at for at, line in enumerate(lines) if line.get("method") == "session/prompt"), len(lines))
        return lines[at:], lines[:at]

    def pieces(self):
        return chunks([line["params"]["update"] for line in self.messages()[0] if line.get("method") == "session/update"])


class AcpxClient:
    """The sessions that acpx has, by name."""
    def __init__(self, trial, answer="allow"):
        self.trial, self.job = trial, trial.job
        command = " ".join(str(word) for word in self.job.agent.command(self.job))
        self.words = [*map(str, self.job.agent.client.program()), "--agent", command, "--format", "json",
                      "--cwd", str(self.job.cwd), "--approve-all" if answer == "allow" else "--deny-all"]
        self.prompts, self.names, self.children, self.over = [], [], set(), threading.Event()
        threading.Thread(target=self._reap, daemon=True).start()

    def _reap(self):
        """acpx waits until the process in the background is gone, which process 1 has to reap."""
        while not self.over.wait(0.1):
            sandbox.reap(self.children)

    def owns(self, process):
        return PROGRAM in process.line

    def start(self, *words):
        sandbox.refuse_network()
        self.trial.write_down("in", " ".join(words))
        child = subprocess.Popen([*self.words, *words], cwd=self.job.cwd, env=self.job.base, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=self.trial.errors, text=True, start_new_session=True)
        self.children.add(child.pid)
        return child

    def run(self, *words):
        child = self.start(*words)
        output, _ = child.communicate(timeout=LIMIT)
        self.trial.write_down("out", output.strip())
        if child.returncode:
            raise ValueError(f"acpx {' '.join(words)}: exit code {child.returncode}: {output.strip()[:200]}")

    # ---- what the cases use

    def open(self, name="one"):
        self.run("sessions", "new", "--name", name)
        self.names.append(name)
        return name

    def load(self, name):
        """The next prompt restores the session. acpx shows the history that it kept itself, and none that is replayed."""
        self.names.append(name)

    def send(self, name, text):
        self.prompts.append(Prompt(self, name, text))
        return self.prompts[-1]

    def wait(self, turn):
        turn.child.wait(LIMIT)
        turn.frames.until(lambda _: turn.frames.over, "end of acpx")
        live, before = turn.messages()
        restored = {line["method"] for line in before if str(line.get("method")) in ("session/load", "session/resume",
                                                                                     "session/new")}
        self.trial.restored += sorted(restored)
        asked = next((line["id"] for line in live if line.get("method") == "session/prompt"), None)
        answer = next((line for line in live if line.get("id") == asked and "method" not in line), {})
        error = answer.get("error", {}).get("message") or (None if "result" in answer else
                                                           f"exit code {turn.child.returncode}")
        return Ended("".join(turn.pieces()), answer.get("result", {}).get("stopReason"), error)

    def seen(self, name):
        return "".join(piece for prompt in self.prompts for piece in prompt.pieces())

    def until_pieces(self, turn, count):
        turn.frames.until(lambda _: turn.frames.over or len(turn.pieces()) >= count, f"{count} pieces of text")

    def asked(self):
        return sum(line.get("method") == "session/request_permission"
                   for prompt in self.prompts for line in prompt.frames.lines)

    def cancel(self, name):
        self.run("cancel", "-s", name)

    def kill(self):
        for process in filter(self.owns, sandbox.processes()):
            os.kill(process.pid, signal.SIGKILL)
        for prompt in self.prompts:
            prompt.child.wait()
        self.over.set()

    def close(self):
        for name in self.names:
            self.run("sessions", "close", name)
        self.over.set()
