"""Restored sessions: one session, one home, two acpipe processes or two agents in succession."""
import contextlib
import json
import subprocess
import threading
import time
from pathlib import Path

import sandbox
from cases import GRACE, Turn, lasted
from faces import LIMIT, drive
from mock_model import HELLO

VARIABLE = {"ACPIPE_REAL": "changed"}
LATE = 1        # seconds: an agent may replay after its response
NOT_OFFERED = "the agent does not support it"


class Trial(Turn):
    """Result of one case, over all its acpipe processes; `notes` are its faults."""

    def __init__(self, job):
        super().__init__()
        self.job, self.start = job, time.monotonic()
        self.record = open(f"{job.log}.ndjson", "w") if job.log else None
        self.stderr = Path(f"{job.log}.stderr") if job.log else job.home / "stderr"
        self.errors = open(self.stderr, "wb")
        self.receipt, self.seconds = None, 0
        self.missing = None             # strategy that the agent does not offer, by agent/status
        self.words = []                 # further text for the cell
        self.orphans = set()            # agents whose acpipe was killed

    def said(self):
        """Returns everything that acpipe wrote to stderr so far."""
        return self.stderr.read_text(errors="replace")

    def expect(self, what, found, wanted):
        if found != wanted:
            self.notes.append(f"{what} {found!r}, not {wanted!r}")

    def write_down(self, direction, what):
        if self.record:
            ms = round((time.monotonic() - self.start) * 1000)
            print(json.dumps({"ms": ms, direction: what}, ensure_ascii=False), file=self.record, flush=True)

    def look_at(self, chunk):
        """Checks a chunk: no agent here remembers another conversation, so that no receipt may warn."""
        if chunk.get("type") == "data-recovery" and chunk["data"].get("warning"):
            self.notes.append(f"the receipt warns: {chunk['data']['warning']}")

    def count_left(self):
        time.sleep(0.1)                 # as in every other case
        left = [process for process in sandbox.processes() if process.pid not in self.orphans]
        time.sleep(1 if left else 0)
        there = {process.pid for process in sandbox.processes()}
        self.left += left
        self.stayed += [process for process in left if process.pid in there]

    def judge(self, receipt, can, memory_lost=False):
        """Checks the receipt of `auto`: the best strategy that is offered, and the reasons why better ones were skipped."""
        self.receipt = receipt
        offered = [rung for rung in ("resume", "load") if can[rung]]
        rung = "new" if memory_lost or not offered else offered[0]
        memory = {"resume": "kept", "load": "replayed", "new": "lost"}[rung]
        self.expect("rung", receipt["rung"], rung)
        self.expect("memory", receipt["memory"], memory)
        above = ["resume", "load"][:{"resume": 0, "load": 1, "new": 2}[rung]]
        self.expect("failed", sorted((failed["rung"] for failed in receipt["failed"]), reverse=True), above)
        for failed in receipt["failed"]:
            if (failed["message"] == NOT_OFFERED) == can[failed["rung"]]:
                self.notes.append(f"{failed['rung']}: {failed['message']}, offered {can[failed['rung']]}")
        self.expect("what was not restored", receipt["notRestored"], [])


class Life(drive.Acpipe):
    """One acpipe process of a trial, with a connected agent."""

    words = ("--permissions", "approve")
    capabilities = {}

    def __init__(self, trial, **options):
        job = trial.job
        sandbox.refuse_network()
        super().__init__(*self.words, program=job.acpipe, env=job.base, cwd=job.home,
                         stderr=trial.errors)
        self.trial, self.chunks, self.seqs = trial, [], {}
        self.answers = {}               # request id -> response
        self.watchdog = threading.Timer(LIMIT + 60, self.child.kill)      # some agents make a session wait, see `ripen`
        self.watchdog.start()
        trial.groups.add(self.child.pid)
        self.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "acpipe-real", "version": "1"},
                                 "capabilities": self.capabilities})
        self.connect(**options)
        self.agents()

    def connect(self, **options):
        job = self.trial.job
        self.call("agent/connect", {**job.agent.named(), "cwd": str(job.cwd), "env": job.variables,
                                    **({"options": options} if options else {})})
        self.can = self.call("agent/status")["capabilities"]

    def agents(self):
        """Returns the agent processes: one for all sessions, or one for each."""
        found = [process for process in sandbox.processes() if process.parent == self.child.pid]
        self.trial.groups |= {process.group for process in found}
        return found

    def send(self, method, params=None):
        self.trial.write_down("in", {"method": method, "params": params})
        return super().send(method, params)

    def read(self):
        message = super().read()
        self.trial.write_down("out", message)
        if message and "method" not in message:
            self.answers[message["id"]] = message
        if message and message.get("method") == "session/chunk":
            params = message["params"]
            seq = self.seqs.get(params["sessionId"])
            if seq is not None and params["seq"] != seq + 1:
                self.trial.notes.append(f"seq {params['seq']} after {seq}")
            self.seqs[params["sessionId"]] = params["seq"]
            self.chunks.append(params)
            self.trial.look_at(params["chunk"])
        return message

    def ensure(self, **wish):
        """Ensures the session and returns the receipt."""
        start = time.monotonic()
        receipt = self.call("session/ensure", wish)["recovery"]
        self.trial.seconds = time.monotonic() - start
        return receipt

    def messages(self):
        return self.call("message/list")["messages"]

    def say(self, number, remembers=()):
        """Sends a prompt with a new mark. The agent must send the model this mark and all marks that it remembers."""
        self.trial.job.model.heard = set()
        before = len(self.chunks)
        # Some agents add a prefix to prompts in some modes, so the keyword has a line of its own.
        for _ in self.prompt(f"zebra-{number}\nsay hello\nzebra-{number}"):
            pass
        summary, ours = self.summary, {self.summary["turnId"]}
        if summary["text"] != HELLO or summary["stopReason"] != "end_turn" or summary["isError"]:
            self.trial.notes.append(f"prompt {number}: text {summary['text']!r}, stopReason {summary['stopReason']}, "
                                    f"errors {summary['errors']}")
        self.trial.expect(f"marks in the request of prompt {number}", sorted(self.trial.job.model.heard),
                          sorted({number, *remembers}))
        # A background turn may end with this prompt: Gemini reports a new mode as text.
        starts = [p for p in self.chunks[:before] if p["chunk"]["type"] == "start"]
        ours |= {p["turnId"] for p in starts if '"unprompted": true' in json.dumps(p)}
        foreign = [params["chunk"]["type"] for params in self.chunks[before:] if params["turnId"] not in (None, *ours)]
        if foreign:
            self.trial.notes.append(f"chunks of another turn: {foreign}")

    def quiet(self):
        """Checks that no chunks arrived, and that none arrive while the agent may still be replaying."""
        time.sleep(LATE)
        self.call("agent/status")
        shown = [params["chunk"]["type"] for params in self.chunks if params["turnId"]]
        if shown:
            self.trial.notes.append(f"live chunks of the replay: {shown}")

    def end(self):
        """Ends acpipe normally, by shutdown."""
        self.agents()
        self.call("shutdown")
        code = self.close()
        self.watchdog.cancel()
        self.trial.expect("exit code", code, 0)
        self.trial.count_left()

    def crash(self):
        """Kills acpipe alone. Its agents must notice that themselves, by the end of their stdin."""
        self.agents()
        self.child.kill()
        self.child.wait()
        self.watchdog.cancel()
        deadline = time.monotonic() + GRACE
        while (found := [p for p in sandbox.processes() if p.group in self.trial.groups]):
            if time.monotonic() > deadline:
                self.trial.orphans = {p.pid for p in found}
                return self.trial.words.append(f"the first {', '.join(sorted({p.name for p in found}))} lives on")
            time.sleep(0.05)


# ---- the cases: two turns, an end, and the session again

def two_turns(trial):
    life = Life(trial)
    life.ensure()
    life.say(1)
    life.say(2, remembers={1})
    return life, life.messages()


def again(trial, messages, strategy="auto", lost=False):
    """A new acpipe restores the session for a third turn."""
    if not lost:
        trial.job.agent.ripen()
    life = Life(trial)
    receipt = life.ensure(strategy=strategy)
    life.quiet()
    if strategy == "auto":
        trial.judge(receipt, life.can, lost)
    trial.receipt = receipt
    trial.expect("messages", receipt["messages"], len(messages))
    if life.messages() != messages:
        trial.notes.append("message/list is another one")
    life.say(3, remembers=() if lost else {1, 2})
    recoveries = [p["chunk"]["data"]["rung"] for p in life.chunks if p["chunk"]["type"] == "data-recovery"]
    trial.expect("data-recovery", recoveries, [receipt["rung"]])
    trial.expect("messages at last", len(life.messages()), len(messages) + 2)
    life.end()
    return life


def resume(trial):
    life, messages = two_turns(trial)
    trial.expect("messages of two turns", len(messages), 4)
    life.end()
    life = again(trial, messages)
    trial.missing = None if life.can["resume"] else "resume"


def load(trial):
    life, messages = two_turns(trial)
    life.end()
    if not life.can["load"]:
        trial.missing = "load"
        return
    again(trial, messages, strategy="load")
    trial.expect("rung", trial.receipt["rung"], "load")
    trial.expect("memory", trial.receipt["memory"], "replayed")
    if trial.receipt["replayed"] < 2:
        trial.notes.append(f"replayed {trial.receipt['replayed']}")
    trial.words.append(f"{trial.receipt['replayed']} messages")


def crash(trial):
    life, messages = two_turns(trial)
    life.crash()
    again(trial, messages)


def unknown_id(trial):
    life, messages = two_turns(trial)
    life.end()
    if not trial.job.agent.forget(trial.job.home):
        trial.notes.append("nothing of its own to forget was found")
    again(trial, messages, lost=True)
    told = (f"{failed['rung']}: {'not offered' if failed['message'] == NOT_OFFERED else failed['kind']}"
            for failed in trial.receipt["failed"])
    trial.words += told


def shown(variables):
    """Returns the variables as agent/getEnvironment shows them, without values of keys."""
    return {name: "[redacted]" if name.endswith("_KEY") else value for name, value in variables.items()}


def environment(trial):
    life, _ = two_turns(trial)
    trial.job.agent.ripen()
    [first] = life.agents()
    start = time.monotonic()
    answer = life.call("agent/updateEnvironment", {"set": VARIABLE})
    trial.seconds = time.monotonic() - start
    trial.expect("changed", answer["changed"], True)
    trial.expect("restarted", answer["restarted"], True)
    trial.expect("sessions", [(s["sessionId"], s["error"]) for s in answer["sessions"]], [("default", None)])
    trial.judge(answer["sessions"][0]["recovery"], life.can)
    trial.expect("getEnvironment", life.call("agent/getEnvironment")["env"], shown({**trial.job.variables, **VARIABLE}))
    [second] = life.agents()
    if first.pid == second.pid or b"ACPIPE_REAL=changed\0" not in Path(f"/proc/{second.pid}/environ").read_bytes():
        trial.notes.append("the agent runs without the variable")
    life.say(3, remembers={1, 2})
    life.end()


def run_once(trial, prompt, *options, output="chunks"):
    """Runs `acpipe run` to its end. Returns the lines of stdout and the exit code."""
    job = trial.job
    variables = [word for name, value in job.variables.items() for word in ("--env", f"{name}={value}")]
    sandbox.refuse_network()
    start = time.monotonic()
    child = subprocess.Popen([job.acpipe, "run", "-o", output, *options, "--cwd", job.cwd, *variables, prompt,
                              *job.agent.words()], env=job.base, cwd=job.home, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=trial.errors, start_new_session=True)
    trial.groups.add(child.pid)
    watchdog = threading.Timer(LIMIT, child.kill)
    watchdog.start()
    lines = []
    for line in child.stdout:
        lines.append(json.loads(line))
        trial.write_down("out", lines[-1])
        trial.look_at(lines[-1])
        trial.groups |= {p.group for p in sandbox.processes() if p.parent == child.pid}
    code = child.wait(GRACE)
    watchdog.cancel()
    trial.seconds = time.monotonic() - start
    trial.count_left()
    return lines, code


def run_on(trial):
    """Runs `acpipe run` twice, the second time with --continue."""
    job = trial.job
    for number, more, marks in ((1, [], [1]), (2, ["--continue"], [1, 2])):
        if more:
            job.agent.ripen()
        job.model.heard = set()
        chunks, code = run_once(trial, f"say hello\nzebra-{number}", *more)
        trial.expect(f"exit code {number}", code, 0)
        text = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
        trial.expect(f"text {number}", text, HELLO)
        trial.expect(f"marks in the request of run {number}", sorted(job.model.heard), marks)
        recoveries = [chunk["data"] for chunk in chunks if chunk["type"] == "data-recovery"]
        trial.expect(f"receipts in run {number}", len(recoveries), number - 1)
    for trial.receipt in recoveries:
        if {failed["message"] for failed in trial.receipt["failed"]} - {NOT_OFFERED}:
            trial.notes.append(f"failed: {trial.receipt['failed']}")


class Recovery:
    def __init__(self, name, steps):
        self.name, self.steps = name, steps

    def not_offered(self, agent):
        """Returns the reason why the case does not apply to this agent, or None."""

    def faults(self, trial):
        ours = trial.ours()
        return [*trial.notes, *([f"{len(ours)} left behind in the agent's group"] if ours else [])]

    def outcome(self, trial):
        receipt = trial.receipt
        came = [*((receipt["rung"], receipt["memory"], *trial.words, lasted(trial.seconds)) if receipt else ())]
        if trial.missing:
            instead = f"; in its place {', '.join(came)}" if came else ""
            return f"not offered ({trial.missing} is false in agent/status{instead})"
        return f"ok ({', '.join(came)})"


RECOVERIES = (
    Recovery("recover resume", resume),
    Recovery("recover load", load),
    Recovery("crash", crash),
    Recovery("unknown id", unknown_id),
    Recovery("environment", environment),
    Recovery("run --continue", run_on),
)


def recover(job):
    trial = Trial(job)
    try:
        job.case.steps(trial)
    except (drive.Failed, EOFError, ValueError, KeyError, OSError, subprocess.TimeoutExpired) as wrong:
        trial.notes.append(f"{type(wrong).__name__}: {wrong}")
    sandbox.sweep()
    return trial
