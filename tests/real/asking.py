"""Permissions: the client decides, a rule denies, "always" is chosen, a request is cancelled."""
import json
import time

from cases import GRACE, NEVER_ASKS
from mock_model import DONE, PROOF, QUESTION
from recovery import Life, Recovery, lasted

ALLOW, ALWAYS, REFUSE = ("allow_once", "allow_always"), ("allow_always", "allow_once"), ("reject_once", "reject_always")


class Asked(Life):
    """A client that answers requests of acpipe."""
    words = ("--permissions", "ask")
    capabilities = {"permissions": True, "questions": True}

    def __init__(self, trial, kinds=(), answer=None):
        self.asked, self.gone = [], []
        self.kinds, self.answer = kinds, answer
        super().__init__(trial)
        self.ensure()

    def read(self):
        message = super().read()
        method = (message or {}).get("method")
        if method in ("permission/request", "question/ask"):
            self.asked.append(message["params"])
            answer = self.answer(message["params"]) if self.answer else self.choose(message["params"]["options"])
            if answer:
                self.reply(message["id"], answer)
        elif method == "$/cancelRequest":
            self.gone.append(message["params"]["by"])
        return message

    def reply(self, number, result):
        self.trial.write_down("in", {"id": number, "result": result})
        answer = {"jsonrpc": "2.0", "id": number, "result": result}
        self.child.stdin.write(json.dumps(answer).encode() + b"\n")
        self.child.stdin.flush()

    def choose(self, options):
        found = [o["optionId"] for kind in self.kinds for o in options if o["kind"] == kind]
        return found and {"outcome": {"outcome": "selected", "optionId": found[0]}}

    def turn(self, prompt):
        """Returns the chunks of one prompt, and sets `self.summary`."""
        start = time.monotonic()
        chunks = list(self.prompt(prompt))
        self.trial.seconds = time.monotonic() - start
        return chunks


def decided(chunks):
    """Returns the last report of each permission request: who decided it, and how."""
    last = {c["id"]: c["data"] for c in chunks if c["type"] == "data-permission"}
    return [(data.get("by"), data.get("approved")) for data in last.values()]


def ran(trial):
    proof = trial.job.cwd / PROOF
    there = proof.exists()
    proof.unlink(missing_ok=True)
    return there


def allowed(trial):
    life = Asked(trial, ALLOW)
    chunks = life.turn("run bash")
    trial.expect("asked", len(life.asked), 1)
    trial.expect("decided", decided(chunks), [("client", True)])
    trial.expect("the command ran", ran(trial), True)
    trial.expect("text ends", life.summary["text"].endswith(DONE), True)
    [asked, *_] = life.asked or [{}]
    trial.words.append(asked.get("toolCall", {}).get("kind") or "no kind")
    life.end()


def refused(trial):
    life = Asked(trial, REFUSE)
    chunks = life.turn("run bash")
    trial.expect("asked", len(life.asked), 1)
    trial.expect("decided", decided(chunks), [("client", False)])
    trial.expect("the command ran", ran(trial), False)
    trial.words.append(life.summary["stopReason"])
    life.end()


def always(trial):
    """The agent may ask again at the second prompt: it decides what "always" means."""
    life = Asked(trial, ALWAYS)
    life.turn("run bash")
    trial.expect("the command ran", ran(trial), True)
    [asked, *_] = life.asked or [{"options": []}]
    offered = any(o["kind"] == "allow_always" for o in asked["options"])
    first = len(life.asked)
    trial.expect("asked", first, 1)
    life.turn("run bash")
    trial.expect("the command ran again", ran(trial), True)
    again = len(life.asked) - first
    trial.words += ["always is offered" if offered else "always is not offered",
                    "asked again" if again else "not asked again"]
    life.end()


def by_rule(trial):
    """A rule denies one command, everything else is approved; the policy reads the agent's description of the call."""
    config = trial.job.home / "config.toml"
    config.write_text('[permissions]\ndefault = "approve"\n\n[[permissions.rules]]\nname = "no-proof"\n'
                      'effect = "deny"\ncommand = ["touch *"]\n')

    class ByRule(Asked):
        words = ("--config", str(config))

    life = ByRule(trial)
    chunks = life.turn("run bash")
    trial.expect("asked", life.asked, [])
    trial.expect("decided", decided(chunks), [("policy", False)])
    rules = [c["data"].get("rule") for c in chunks if c["type"] == "data-permission" and "rule" in c["data"]]
    trial.expect("rule", rules, ['rule "no-proof"'])
    trial.expect("the command ran", ran(trial), False)
    trial.words.append(life.summary["stopReason"])
    life.end()


def withdrawn(trial):
    """The client cancels the turn without an answer: nothing hangs."""
    life = Asked(trial)
    number = life.send("session/prompt", {"sessionId": "default", "message": "run bash"})
    while not life.asked:
        life.read()
    start = time.monotonic()
    cancel = life.send("session/cancel")
    answers = {}
    while len(answers) < 2:
        message = life.read()
        if message.get("id") in (number, cancel) and "method" not in message:
            answers[message["id"]] = message
    trial.seconds = time.monotonic() - start
    if trial.seconds > GRACE:
        trial.notes.append(f"the cancel took {lasted(trial.seconds)}")
    trial.expect("withdrawn", life.gone, ["cancel"])
    trial.expect("stopReason", answers[number].get("result", {}).get("stopReason"), "cancelled")
    trial.expect("the command ran", ran(trial), False)
    life.end()


def question(trial):
    """The user answers an elicitation, and the agent receives the answer."""
    label = QUESTION["options"][0]["label"]

    def answer(asked):
        properties = (asked.get("schema") or {}).get("properties", {})
        name = next(iter(properties), "")
        return {"action": "accept", "content": {name: label}} if name else {"action": "decline"}

    life = Asked(trial, answer=answer)
    life.turn("ask me")
    trial.expect("asked", [(a.get("kind"), QUESTION["question"] in json.dumps(a)) for a in life.asked], [("form", True)])
    heard = [r["result"] for r in life.summary["toolResults"]]
    trial.expect("the agent heard it", any(label in str(result) for result in heard), True)
    life.end()


class Case(Recovery):
    def not_offered(self, agent):
        return None if agent.asks else NEVER_ASKS

    def outcome(self, trial):
        return f"ok ({', '.join((*trial.words, lasted(trial.seconds)))})"


ASKING = (
    Case("asked, allowed", allowed),
    Case("asked, refused", refused),
    Case("always", always),
    Case("denied by rule", by_rule),
    Case("withdrawn", withdrawn),
)
class Question(Case):
    def not_offered(self, agent):
        return None


QUESTIONS = (Question("question answered", question),)
