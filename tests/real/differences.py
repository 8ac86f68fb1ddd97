"""Differences between agents: permission requests that hide the command, failures that look like success, modes and
models, and sessions that are closed and opened again at once."""
import subprocess
import time

from mock_model import PROOF
from recovery import Life, Recovery, lasted, run_once

RULES = ("Bash", "Bash(touch:*)")
COMMAND = "touch"       # part of the command that the rules deny
ROUNDS = 3


class Case(Recovery):
    def outcome(self, trial):
        if trial.missing:
            return f"not offered ({trial.missing})"
        return f"ok ({', '.join((*trial.words, lasted(trial.seconds)))})"


# ---- deny by rule

def by_rule(trial):
    """A denied command does not run, whatever the permission request shows of it. If the agent does not request
    permission, the command runs, and acpipe reports it."""
    for rule in RULES:
        said = trial.said()
        lines, code = run_once(trial, "run bash", "--permissions", "approve", "--disallow-tool", rule)
        proof = trial.job.cwd / PROOF
        ran = proof.exists()
        proof.unlink(missing_ok=True)
        kinds = [line.get("type") for line in lines]
        if trial.job.agent.asks:
            if ran:
                trial.notes.append(f"{rule}: THE COMMAND RAN")
            if "tool-output-available" in kinds:
                trial.notes.append(f"{rule}: the tool has an output")
            if code != 0 and (code, kinds[-1:]) != (1, ["abort"]):
                trial.notes.append(f"{rule}: exit code {code}")
            trial.words.append("cancelled" if kinds[-1:] == ["abort"] else lines[-1].get("finishReason", "no end"))
        else:
            trial.expect(f"{rule}: the command ran", ran, True)
            if COMMAND not in trial.said()[len(said):]:
                trial.notes.append(f"{rule}: the command ran without a question, and stderr does not name it")
            if COMMAND not in ledger(trial):
                trial.notes.append(f"{rule}: the command ran without a question, and the ledger does not have it")
            trial.words.append("ran unasked, reported")


def ledger(trial):
    """Returns the stored decisions of all sessions."""
    show = [trial.job.acpipe, "permissions", "show", "--json"]
    return subprocess.run(show, env=trial.job.base, cwd=trial.job.home, capture_output=True, text=True).stdout


# ---- silent failure

def silent(trial):
    """The model answers with an error. `acpipe run` fails and reports it, however the agent ends its turn."""
    for status in trial.job.agent.fails:
        said = trial.said()
        lines, code = run_once(trial, f"fail {status}", output="json")
        [summary] = lines if len(lines) == 1 else [{}]
        if code == 0 or code is None:
            trial.notes.append(f"{status}: exit code {code}")
        if summary.get("isError") is not True:
            trial.notes.append(f"{status}: isError {summary.get('isError')}, stopReason {summary.get('stopReason')}")
        if not summary.get("errors"):
            trial.notes.append(f"{status}: no error in the summary")
        if not trial.said()[len(said):].strip():
            trial.notes.append(f"{status}: nothing on stderr")
        kinds = [error.get("kind") for error in summary.get("errors") or [{}]]
        trial.words.append(f"{status}: {kinds[0]}, exit {code}")


# ---- mode and model

def settings(state, what):
    """Modes or models in `state`: name of the place -> (current, choices)."""
    found = {}
    listed = state.get(f"{what}s") or {}
    choices = listed.get(f"available{what.capitalize()}s") or []
    if choices:
        ids = [choice.get(f"{what}Id") or choice.get("id") for choice in choices]
        found[f"{what}s"] = (listed.get(f"current{what.capitalize()}Id"), ids)
    for option in state.get("configOptions") or []:
        if option.get("category") == what and isinstance(option.get("options"), list):
            flat = [one for group in option["options"] for one in group.get("options", [group])]
            found[f"option {option['id']}"] = (option.get("currentValue"), [one.get("value") for one in flat])
    return found


def set_one(trial, life, state, what):
    """Sets a choice that is not the current one, if there is one, and compares every place that lists it. Returns the
    new state and the choice."""
    before = settings(state, what)
    if not before:
        trial.words.append(f"no {what}s")
        return state, None
    # The agent's list, else the last option of the category: a provider may stand before the model.
    current, choices = before.get(f"{what}s") or list(before.values())[-1]
    others = [choice for choice in choices if choice != current]
    wanted = next((choice for choice in others if "mock" in choice), (others or choices)[0])
    state = life.call(f"session/set{what.capitalize()}", {what: wanted})["state"]
    for place, (now, choices) in settings(state, what).items():
        if wanted in choices:
            trial.expect(f"{what}: {place}", now, wanted)
    trial.expect(f"session/get.{what}", life.call("session/get", {"sessionId": "default"})[what], wanted)
    trial.words.append(f"{what} {wanted.rsplit('#')[-1]}")
    return state, wanted


def mode_and_model(trial):
    life = Life(trial)
    state = life.call("session/ensure", {})["state"]
    if not settings(state, "mode") and not settings(state, "model"):
        trial.missing = "no modes and no models in state"
    start = time.monotonic()
    state, _ = set_one(trial, life, state, "mode")
    state, model = set_one(trial, life, state, "model")
    trial.seconds = time.monotonic() - start
    life.say(1)
    named = trial.job.agent.wire_model(model) if model else None
    if named:
        trial.expect("the model that was asked", trial.job.model.asked, named)
    life.end()


# ---- close and prompt

def closed(trial):
    """Sends close, ensure and a prompt without waiting. The session is restored as well as the agent offers."""
    life = Life(trial)
    life.ensure()
    life.say(1)
    trial.job.agent.ripen()
    offered = life.can["resume"] or life.can["load"]
    if not offered:
        trial.missing = "resume and load are false in agent/status"
    for number in range(2, 2 + ROUNDS):
        number_of_close = life.send("session/close")
        number_of_ensure = life.send("session/ensure")
        life.say(number, remembers=range(1, number) if offered else ())
        if "error" in life.answers.get(number_of_close, {"error": "no answer"}):
            trial.notes.append(f"session/close: {life.answers.get(number_of_close)}")
        if not offered:
            break
        receipt = life.answers.get(number_of_ensure, {}).get("result", {}).get("recovery")
        if not receipt:
            trial.notes.append(f"session/ensure: {life.answers.get(number_of_ensure)}")
            break
        trial.judge(receipt, life.can)
        trial.words = [receipt["rung"], receipt["memory"], f"{number - 1} times"]
    life.end()


DIFFERENCES = (
    Case("deny by rule", by_rule),
    Case("silent failure", silent),
    Case("mode and model", mode_and_model),
    Case("close and prompt", closed),
)
