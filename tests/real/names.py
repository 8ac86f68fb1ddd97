"""Agents by name: their programs are in PATH, as their users install them, and acpipe knows their command lines."""
import json
import subprocess

import sandbox
from agents import AGENTS
from cases import lasted
from faces import LIMIT
from mock_model import HELLO
from recovery import Life, Recovery, run_once

MINE = "mine"       # name of an agent that the configuration file defines


class Named:
    """One agent or several, for a HOME in which `programs` holds their programs under the names of their packages."""
    base = {}

    def __init__(self, *names, as_they_come=False):
        self.agents = [AGENTS[name].as_it_comes() if as_they_come else AGENTS[name] for name in names]
        self.names = [agent.builtin or name for name, agent in zip(names, self.agents)]
        self.package, self.title = self, " + ".join(names)

    def packages(self):
        return [package for agent in self.agents for package in agent.packages()]

    def installed(self):
        return " + ".join(str(agent.package.installed()) for agent in self.agents)

    def words(self):
        return ()           # the cases pass --agent

    def variables(self, url, home):
        found = {}
        for agent in self.agents:
            found |= {name: value for name, value in agent.variables(url, home).items() if name not in agent.own}
        return found

    def configure(self, url, home):
        (home / "programs").mkdir()
        for agent in self.agents:
            agent.configure(url, home)
            for program in (agent.program(), *agent.programs):
                (home / "programs" / program.name).symlink_to(program)

    def ripen(self):
        for agent in self.agents:
            agent.ripen()


def on_path(job):
    """Puts the programs into acpipe's PATH."""
    job.base["PATH"] = f"{job.home / 'programs'}:{job.base['PATH']}"


def exported(job):
    """Puts the variables of the agents into acpipe's own environment, where users have them."""
    on_path(job)
    job.base |= job.variables
    job.variables = {}


def lines_of(trial, *words):
    """Returns the JSON lines that an acpipe command prints."""
    sandbox.refuse_network()
    done = subprocess.run([trial.job.acpipe, *words], env=trial.job.base, cwd=trial.job.cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=trial.errors, timeout=LIMIT)
    trial.expect(f"exit code of {' '.join(words)}", done.returncode, 0)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for line in found:
        trial.write_down("out", line)
    return found


# ---- one agent

def listed(trial):
    job, [name] = trial.job, trial.job.agent.names
    exported(job)
    found = {agent["agent"]: agent for agent in lines_of(trial, "agents", "--json")}
    if name not in found:
        return trial.notes.append(f"not among {', '.join(found) or 'no agents'}")
    agent = found[name]
    trial.expect("state", agent["state"], "installed")
    trial.expect("source", agent["source"], "builtIn")
    program = job.home / "programs" / agent["command"]
    trial.expect("program", (agent["program"] or {}).get("file"), str(program))
    trial.words.append(f"`{' '.join((agent['command'], *agent['args']))}`")


def said_hello(trial, name):
    """Runs one prompt and checks the answer and the stored session."""
    job = trial.job
    [summary], code = run_once(trial, "say hello", "--agent", name, output="json")
    trial.expect("exit code", code, 0)
    trial.expect("text", summary["text"], HELLO)
    trial.expect("isError", summary["isError"], False)
    stored = lines_of(trial, "sessions", "list", "--json")
    trial.expect("agents of the stored sessions", [session.get("agentName") for session in stored], [name])
    trial.expect("messages", [session["messages"] for session in stored], [2])
    trial.words.append(lasted(trial.seconds))


def run_by_name(trial):
    exported(trial.job)
    [name] = trial.job.agent.names
    said_hello(trial, name)


def run_configured(trial):
    """The name and the variables are in the configuration file, and not in acpipe's environment."""
    job, [name] = trial.job, trial.job.agent.names
    on_path(job)
    text = [f"[agents.{MINE}]", f"use = {json.dumps(name)}", f"[agents.{MINE}.env]",
            *(f"{key} = {json.dumps(value)}" for key, value in job.variables.items())]
    job.variables = {}
    file = job.home / ".config" / "acpipe" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(text) + "\n")
    said_hello(trial, MINE)


# ---- two agents in one serve

class NamedLife(Life):
    """Nothing connects the agents: each is started by the first session that names it."""

    def connect(self):
        pass

    def named(self, session, agent):
        """Ensures a session with this agent and returns the receipt."""
        wish = {"sessionId": session, "agent": agent, "cwd": str(self.trial.job.cwd)}
        result = self.call("session/ensure", wish)
        self.trial.expect(f"agent of session {session}", result["agentName"], agent)
        self.agents()
        return result["recovery"]

    def start(self, session, keyword):
        return self.send("session/prompt", {"sessionId": session, "message": keyword})

    def until(self, holds):
        while not holds():
            if self.read() is None:
                raise EOFError("acpipe exited")

    def texts(self, session):
        return [p for p in self.chunks if p["sessionId"] == session and p["chunk"]["type"] == "text-delta"]

    def summary_of(self, number, what, text=HELLO, stop="end_turn"):
        """Waits for the response to a prompt and checks it."""
        self.until(lambda: number in self.answers)
        if "error" in self.answers[number]:
            return self.trial.notes.append(f"{what}: {self.answers[number]['error']['message']}")
        summary = self.answers[number]["result"]
        self.trial.expect(f"stopReason of {what}", summary["stopReason"], stop)
        if text:
            self.trial.expect(f"text of {what}", summary["text"], text)


def at_once(trial):
    """Each agent answers in its session while the other one is in a turn, then both at once."""
    exported(trial.job)
    life, names = NamedLife(trial), trial.job.agent.names
    for name, agent in zip(names, trial.job.agent.agents):
        life.named(name, name)
        status = life.call("agent/status", {"agent": name})
        trial.expect(f"version of {name}", status["agentInfo"]["version"], agent.package.installed())
    for busy, other in (names, names[::-1]):
        before = len(life.texts(busy))
        slow = life.start(busy, "slow")
        life.until(lambda: len(life.texts(busy)) >= before + 2 or slow in life.answers)
        life.summary_of(life.start(other, "say hello"), f"{other} during the turn of {busy}")
        if slow in life.answers:
            trial.notes.append(f"the turn of {busy} ended first")
        life.send("session/cancel", {"sessionId": busy})
        life.summary_of(slow, f"{busy}, cancelled", text=None, stop="cancelled")
    prompts = {name: life.start(name, "say hello") for name in names}
    for name, number in prompts.items():
        life.summary_of(number, f"{name}, both at once")
    found = {agent["agent"]: agent for agent in life.call("agent/list")["agents"]}
    for name in names:
        trial.expect(f"state of {name}", found.get(name, {}).get("state"), "ready")
    life.end()


def handed_over(first, second):
    def steps(trial):
        """The second agent gets the conversation of the first with its prompt, and then the first what it missed."""
        exported(trial.job)
        life, names = NamedLife(trial), trial.job.agent.names
        old, new = names[first], names[second]
        life.named("default", old)
        life.say(1)
        receipt = life.named("default", new)
        trial.expect("handedOverFrom", receipt.get("handedOverFrom"), old)
        trial.expect("rung", receipt["rung"], "new")
        if not receipt["reinjected"]:
            trial.notes.append("nothing reinjected")
        life.say(2, remembers={1})
        trial.job.agent.agents[first].ripen()
        back = life.named("default", old)
        trial.expect("handedOverFrom, back", back.get("handedOverFrom"), new)
        trial.expect("missed, back", back["missed"], 2)
        if back["memory"] == "lost":
            trial.notes.append(f"{old} lost its session: {back['failed']}")
        life.say(3, remembers={1, 2})
        trial.expect("messages", len(life.messages()), 6)
        trial.words.append(f"{receipt['reinjected']} characters; back: {back['rung']}, {back['memory']}")
        life.end()
    return steps


class Naming(Recovery):
    def outcome(self, trial):
        return f"ok ({', '.join(trial.words)})" if trial.words else "ok"


ONE = (
    Naming("listed", listed),
    Naming("run --agent", run_by_name),
    Naming("configured", run_configured),
)
TWO = (
    Naming("at once", at_once),
    Naming("handed over", handed_over(0, 1)),
    Naming("the other way", handed_over(1, 0)),
)
NAMED = {name: Named(name) for name in AGENTS}
PAIRS = {" + ".join(pair): Named(*pair) for pair in (
    ("claude", "opencode"), ("codex", "gemini"), ("claude-acp", "codex-zed"), ("kimi", "qwen"), ("vibe", "copilot"),
    ("pi", "cline"))}
