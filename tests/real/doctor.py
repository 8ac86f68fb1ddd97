"""Faults that `acpipe doctor --probe` measures in each agent, and the profiles it writes."""
import json
import subprocess
from pathlib import Path

import sandbox
from faces import LIMIT
from names import Naming, exported

PROFILES = Path(__file__).resolve().parent / "profiles"
# Faults that earlier measurements of the same versions found, by hand and with recordings.
KNOWN = {"codex": {"ignoresEndOfInput"}, "codex-zed": {"ignoresEndOfInput"}, "gemini": {"lateReplayMs"},
         "pi": {"oneSessionPerProcess"}}


def probed(trial):
    """Measures the agent. A fault of the agent is a result; a problem is a fault of this case."""
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
        return trial.words.append("no profile")
    text = Path(report["profile"]).read_text()
    PROFILES.mkdir(exist_ok=True)
    (PROFILES / f"{job.agent.title}.json").write_text(text)
    quirks = {name: value for name, value in json.loads(text)["quirks"].items() if value not in (False, None)}
    known = KNOWN.get(job.agent.title, set())
    trial.words.append(" ".join(name if value is True else f"{name} {value}" for name, value in quirks.items()) or "no faults")
    trial.words += [f"{name} is new" for name in sorted(set(quirks) - known)]
    trial.words += [f"{name} was known, and is not found" for name in sorted(known - set(quirks))]


DOCTOR = (Naming("probe", probed),)
