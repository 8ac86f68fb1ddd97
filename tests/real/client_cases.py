"""Clients of ACP: each in front of agents behind `acpipe acp`, and in front of the same agents alone."""
import os
import signal
import subprocess
import time

import sandbox
from agents import AGENTS
from cases import lasted
from clients import CLIENTS
from mock_model import DONE, HELLO, PROOF
from names import Named, exported
from recovery import Recovery, Trial

QUIET = 12      # seconds until the processes of a client that has ended are gone; acpipe gives an agent 10
ACPIPE = ("acpipe", "supervise-agent")      # names of acpipe's own processes
SLOW = 30       # seconds until a turn ends whose agent was killed


class ClientTrial(Trial):
    """Result of one case with a client; `notes` are its faults."""

    def __init__(self, job):
        super().__init__(job)
        self.restored = []          # calls by which the client restored sessions
        self.mark = self.start

    def blame(self):
        return (("left behind", self.left),)

    def stopwatch(self):
        self.mark = time.monotonic()

    def lap(self):
        self.seconds = time.monotonic() - self.mark

    def settle(self):
        """Waits until no process is left in the sandbox. What is left then was left behind."""
        start = time.monotonic()
        while (found := sandbox.processes()) and time.monotonic() - start < QUIET:
            time.sleep(0.05)
        if found:
            self.notes.append(f"left behind: {', '.join(sorted({process.name for process in found}))}")
        self.left = self.stayed = found
        sandbox.sweep()

    def remembers(self, prompt, wanted, others=()):
        """Compares the marks in the model's last request. `others` may be among them."""
        found = set(self.job.model.heard)
        if not wanted <= found or found - wanted - set(others):
            self.notes.append(f"marks in the request of prompt {prompt} {sorted(found)}, not {sorted(wanted)}")


def prompt(keyword, number):
    """Some agents and clients add a prefix to prompts in some modes, so the keyword has a line of its own."""
    return f"zebra-{number}\n{keyword}\nzebra-{number}"


def hello(trial, client, session, number):
    """Plays one turn that must be answered whole."""
    trial.job.model.heard = set()
    turn = client.wait(client.send(session, prompt("say hello", number)))
    if (turn.text, turn.stop) != (HELLO, "end_turn"):
        trial.notes.append(f"prompt {number}: {turn}, text {turn.text!r}")


def start(trial, answer="allow"):
    return trial.job.agent.client.drive(trial, answer)


def finish(trial, client):
    client.close()
    trial.settle()


# ---- the cases

def say_hello(trial):
    client = start(trial)
    hello(trial, client, client.open(), 1)
    trial.lap()
    finish(trial, client)


def run_tool(answer):
    def steps(trial):
        client = start(trial, answer)
        session = client.open()
        trial.stopwatch()
        turn = client.wait(client.send(session, prompt("run bash", 1)))
        trial.lap()
        ran = (trial.job.cwd / PROOF).exists()
        trial.expect("permission requests", client.asked(), 1)
        trial.expect("the command ran", ran, answer == "allow")
        if answer == "allow" and not (turn.stop == "end_turn" and turn.text.endswith(DONE)):
            trial.notes.append(f"{turn}, text ends {turn.text[-40:]!r}")
        if answer == "refuse" and turn.stop not in ("end_turn", "cancelled", "refusal"):
            trial.notes.append(str(turn))
        trial.words.append(str(turn))
        finish(trial, client)
    return steps


def cancel(trial):
    client = start(trial)
    session = client.open()
    turn = client.send(session, prompt("slow", 1))
    client.until_pieces(turn, 3)
    trial.stopwatch()
    client.cancel(session)
    ended = client.wait(turn)
    trial.lap()
    trial.expect("stop reason", str(ended), "cancelled")
    if trial.seconds > 5:
        trial.notes.append(f"cancel took {trial.seconds:.0f} s")
    hello(trial, client, session, 2)
    finish(trial, client)


def loaded(trial, session, prompts, seen):
    """Loads the session in a new process of the client, whose history must have these prompts and all of `seen`."""
    trial.job.agent.ripen()
    client = start(trial)
    trial.stopwatch()
    history = client.load(session)
    trial.lap()
    if history is None:
        trial.seconds = None            # it loads with the next prompt
        trial.words.append("the client's own history")
    else:
        user, agent = history
        lost = [text for text in prompts if text not in user] + [seen] * (seen not in agent)
        if lost:
            trial.notes.append(f"history without {', '.join(map(repr, lost))}")
        trial.words.append("history")
    hello(trial, client, session, 3)
    trial.words += trial.restored[-1:]
    return client


def editor_killed(trial):
    """A turn, SIGKILL in the second one, and a new process of the client with the same session."""
    client = start(trial)
    session = client.open()
    hello(trial, client, session, 1)
    client.until_pieces(client.send(session, prompt("slow", 2)), 3)
    client.kill()
    seen = client.seen(session)
    trial.settle()
    client = loaded(trial, session, ("zebra-1", "zebra-2"), seen)
    trial.remembers(3, {1, 3}, others={2})
    if {1, 2} <= trial.job.model.heard:
        trial.words.append("the agent remembers the cut turn")
    finish(trial, client)


def agent_forgot(trial):
    """A turn; the sessions of the agent are deleted; a new process of the client with the same session."""
    client = start(trial)
    session = client.open()
    hello(trial, client, session, 1)
    seen = client.seen(session)
    client.kill()
    trial.settle()
    if not trial.job.agent.agents[0].forget(trial.job.home):
        trial.notes.append("nothing of its own to forget was found")
    client = loaded(trial, session, ("zebra-1",), seen)
    trial.remembers(3, {1, 3})
    finish(trial, client)


def agent_killed(trial):
    """SIGKILL for the agent in a turn, and another prompt."""
    client = start(trial)
    session = client.open()
    hello(trial, client, session, 1)
    turn = client.send(session, prompt("slow", 2))
    client.until_pieces(turn, 3)
    trial.stopwatch()
    for process in sandbox.processes():
        if not client.owns(process) and not process.name.startswith(ACPIPE):
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass                # it ended with its parent
    ended = client.wait(turn)
    trial.lap()
    if trial.seconds > SLOW:
        trial.notes.append(f"the turn ended after {trial.seconds:.0f} s")
    trial.words.append(str(ended).replace("|", "/")[:80])
    hello(trial, client, session, 3)
    trial.remembers(3, {1, 3}, others={2})
    finish(trial, client)


def two_sessions(trial):
    """The second session answers while the first one is in a turn, and they do not know each other."""
    client = start(trial)
    one, two = client.open("one"), client.open("two")
    turn = client.send(one, prompt("slow", 1))
    client.until_pieces(turn, 3)
    hello(trial, client, two, 2)
    trial.remembers(2, {2})
    trial.stopwatch()
    client.cancel(one)
    trial.expect("stop reason", str(client.wait(turn)), "cancelled")
    trial.lap()
    hello(trial, client, one, 3)
    trial.remembers(3, {3}, others={1})
    finish(trial, client)


class ClientCase(Recovery):
    """A case whose faults fail the table."""

    def not_offered(self, agent):
        return agent.client.lacks.get(self.name)

    def faults(self, trial):
        return trial.notes

    def outcome(self, trial):
        return f"ok ({', '.join([*trial.words, *([] if trial.seconds is None else [lasted(trial.seconds)])])})"


class Baseline(ClientCase):
    """The same case without acpipe, which shows what agents and clients do alone; it cannot fail."""

    def faults(self, trial):
        return ()

    def outcome(self, trial):
        return "no: " + "; ".join(trial.notes).replace("|", "\\|") if trial.notes else super().outcome(trial)


STEPS = (("hello", say_hello), ("tool allowed", run_tool("allow")), ("tool refused", run_tool("refuse")),
         ("cancel", cancel), ("editor killed", editor_killed), ("agent forgot", agent_forgot),
         ("agent killed", agent_killed), ("two sessions", two_sessions))
BEHIND = tuple(ClientCase(*step) for step in STEPS)
ALONE = tuple(Baseline(*step) for step in STEPS)


class Pair(Named):
    """A client and an agent that acpipe finds by its name."""

    def __init__(self, client, agent):
        super().__init__(agent)
        self.client, self.title = CLIENTS[client], f"{client} + {agent}"

    def installed(self):
        return f"{self.client.package.installed()} + {super().installed()}"

    def command(self, job):
        return [job.acpipe, "acp", "--agent", self.names[0]]


class Alone(Pair):
    """A client and an agent that it starts itself."""

    def command(self, job):
        return self.agents[0].command()


FRONT = {pair.title: pair for pair in (Pair(client, agent) for client in CLIENTS
                                       for agent in ("claude", "codex", "opencode"))}
DIRECT = {pair.title: pair for pair in (Alone(client, agent) for client in CLIENTS
                                        for agent in ("claude-acp", "codex", "opencode"))}


def front(job):
    exported(job)
    trial = ClientTrial(job)
    try:
        job.case.steps(trial)
    except (EOFError, ValueError, KeyError, OSError, subprocess.TimeoutExpired) as wrong:
        trial.notes.append(f"{type(wrong).__name__}: {wrong}")
    sandbox.sweep()
    return trial
