"""A forbidden tool: what happens to a command or an edit that the policy refuses, with each agent as its users have it.

The agents run by name, without the settings that make them ask elsewhere in these tests: what an agent runs unasked is
what a user without settings meets."""
import json
import re
import time

from cases import lasted
from differences import ledger
from mock_model import PROOF
from names import AGENTS, Named, NamedLife, Naming, exported
from recovery import run_once

WRITTEN = "written.txt"
# Lines of acpipe: before the prompt, that the agent decides for itself; afterwards, that a tool ran, or may have run,
# without a request. The latter is all that can be known of a call that never ends.
WARNED = re.compile(r"^acpipe: .*\b(not ask|never asks?|asks? (for )?no|without asking|unasked|decides for itself)\b", re.M)
REPORTED = re.compile(r"^acpipe: .*\b(ran|have run)\b.*\b(without asking|unasked)\b", re.M)


def play(trial, prompt, proof, *options):
    """Runs one prompt. Returns the words for the cell; silence is a fault."""
    job, [name] = trial.job, trial.job.agent.names
    said, stored, proof = len(trial.said()), unasked(trial), job.cwd / proof
    job.model.begun = None
    job.model.begin = lambda: trial.said()[said:]       # at the model's first request
    lines, code = run_once(trial, prompt, "--agent", name, *options)
    job.model.begin = None
    before, after = job.model.begun, trial.said()[said:]
    ran = proof.exists()
    proof.unlink(missing_ok=True)
    approvals = [line["approved"] for line in lines if line.get("type") == "tool-approval-response"]
    warned = bool(WARNED.search(before or ""))
    trial.played = {"stored": unasked(trial) > stored, "ran": ran, "code": code, "approvals": approvals, "before": before, "after": after}
    trial.write_down("out", trial.played)
    if not ran:
        if before is None:
            return "refused before the prompt" if code and after.strip() else "NO PROMPT"
        words = ["refused" if approvals.count(False) else "refused by the agent"]
        return ", ".join(words + ["wrongly reported"] * bool(REPORTED.search(after)))
    words = ["warned before"] if warned else []
    words += ["reported"] if REPORTED.search(after) else []
    return ", ".join(words) or "SILENT"


def unasked(trial):
    """Returns how many tools have run without a request, by the stored decisions."""
    return len(re.findall(r'"what": ?"tool"', ledger(trial)))


def allowed(trial):
    """The control: with the policy `approve` both tools run, and nothing warns."""
    exported(trial.job)
    for prompt, proof in (("run bash", PROOF), (f"write file {trial.job.cwd / WRITTEN}", WRITTEN)):
        play(trial, prompt, proof, "--permissions", "approve")
        trial.expect(f"{prompt.split()[0]}: it ran", trial.played["ran"], True)
        trial.expect(f"{prompt.split()[0]}: warned", bool(WARNED.search(trial.played["after"])), False)
        asked = len(trial.played["approvals"])
        trial.words.append(f"{'command' if proof == PROOF else 'edit'} {'asked' if asked else 'not asked'}")


def forbidden(*options, prompt="run bash", proof=PROOF):
    """Both with and without -q: the words must be the same, as -q hides no warning."""
    def steps(trial):
        exported(trial.job)
        text = prompt.format(cwd=trial.job.cwd)
        loud = play(trial, text, proof, *options)
        quiet = play(trial, text, proof, "-q", *options)
        for words, what in ((loud, ""), (quiet, " with -q")):
            if words in ("SILENT", "NO PROMPT"):
                trial.notes.append(f"{words}{what} (exit {trial.played['code']})")
        if "reported" in quiet and not trial.played["stored"]:
            trial.notes.append("not in the ledger")
        trial.words.append(loud if loud == quiet else f"{loud}; with -q: {quiet}")
        if trial.job.agent.agents[0].sandboxes and proof == PROOF:
            # There the command runs and cannot write, so that a report is right.
            inside = play(trial, "run plain", proof, *options).replace("wrongly reported", "reported")
            if inside == "SILENT":
                trial.notes.append("SILENT inside the agent's own sandbox")
            trial.words.append(f"inside the agent's own sandbox: {inside}")
    return steps


def by_name(trial):
    """A tool that a rule allows by its name runs, and nothing is reported, whatever the agent calls it."""
    exported(trial.job)
    words = play(trial, "run bash", PROOF, "--permissions", "deny", "--allow-tool", "Bash")
    trial.expect("the command ran", trial.played["ran"], True)
    trial.expect("reported", "reported" in words or trial.played["stored"], False)
    trial.words.append("asked, allowed" if trial.played["approvals"] else "not asked")


def served(trial):
    """The same over `acpipe serve`, whose client sees the receipt."""
    exported(trial.job)
    [name] = trial.job.agent.names

    class Served(NamedLife):
        words = ("--permissions", "deny")

    life = Served(trial)
    receipt = life.named("default", name)
    start = time.monotonic()
    list(life.prompt("run bash"))
    trial.seconds = time.monotonic() - start
    ran = any((folder / PROOF).exists() for folder in (trial.job.cwd, trial.job.home))     # fast-agent runs in acpipe's folder
    notes = [p["chunk"] for p in life.chunks if p["chunk"]["type"] in ("data-notice", "data-permission")]
    trial.write_down("out", {"receipt": receipt, "notes": notes})
    warned = bool(receipt.get("policyWarning"))
    reported = bool(re.search("(ran|have run) a tool without asking", json.dumps(notes)))
    if ran and not (warned or reported):
        trial.notes.append("SILENT")
    trial.words += (["warned before"] * warned + ["reported"] * reported) if ran else ["refused"]
    trial.words += [f"mode {receipt['chosenMode']}"] if receipt.get("chosenMode") else []
    life.end()


class Case(Naming):
    def outcome(self, trial):
        return f"{', '.join(trial.words)} ({lasted(trial.seconds)})"


FORBIDDEN = (
    Case("allowed", allowed),
    Case("deny", forbidden("--permissions", "deny")),
    Case("disallow-tool", forbidden("--permissions", "approve", "--disallow-tool", "Bash")),
    Case("deny, an edit", forbidden("--permissions", "deny", prompt="write file {cwd}/" + WRITTEN, proof=WRITTEN)),
    Case("deny, serve", served),
    Case("allow-tool", by_name),
)
PLAIN = {name: Named(name, as_they_come=True) for name in AGENTS}
