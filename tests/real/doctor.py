"""Faults that `acpipe doctor --probe` measures in each agent, and the profiles it writes."""
import json
import subprocess
from pathlib import Path

import sandbox
from faces import LIMIT
from names import NamedLife, Naming, exported

PROFILES = Path(__file__).resolve().parent / "profiles"
# Faults that earlier measurements of the same versions found, by hand and with recordings.
KNOWN = {"codex": {"ignoresEndOfInput"}, "codex-zed": {"ignoresEndOfInput"}, "gemini": {"lateReplayMs"},
         "pi": {"oneSessionPerProcess"}}


def probed(trial):
    """Measures the agent. A fault of the agent is a result; a problem is a fault of this case. With the profile, a
    session must still be restored."""
    job, [name] = trial.job, trial.job.agent.names
    exported(job)
    sandbox.refuse_network()
    done = subprocess.run([job.acpipe, "doctor", name, "--probe", "--yes", "--json"], env=job.base, cwd=job.cwd,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=trial.errors, timeout=2 * LIMIT)
    report = json.loads(done.stdout)
    trial.write_down("out", report)
    trial.expect("exit code", done.returncode, 0)
    trial.notes += [f"{check['check']}: {check['found']}" for check in report["checks"] if check["status"] == "problem"]
    trial.count_left()
    if "profile" not in report:
        return trial.words.append("no profile, as it does not speak ACP")
    text = Path(report["profile"]).read_text()
    quirks = {quirk: value for quirk, value in json.loads(text)["quirks"].items() if value not in (False, None)}
    known = KNOWN.get(job.agent.title, set())
    found = [quirk if value is True else f"{quirk} {value}" for quirk, value in quirks.items()]
    trial.words += found or ["no faults"]
    trial.words += [f"{quirk} is new" for quirk in sorted(set(quirks) - known)]
    trial.words += [f"{quirk} was known, and is not found" for quirk in sorted(known - set(quirks))]
    restored(trial, name)
    if not trial.notes:
        PROFILES.mkdir(exist_ok=True)
        (PROFILES / f"{job.agent.title}.json").write_text(text)


def restored(trial, name):
    for number in (1, 2):
        life = NamedLife(trial)
        receipt = life.named("default", name)
        life.say(number, remembers=range(1, number))
        life.end()
        if number == 1:
            trial.job.agent.ripen()
    trial.words.append(f"then {receipt['rung']}, {receipt['memory']}")


DOCTOR = (Naming("probe", probed),)
