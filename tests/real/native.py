"""The Claude Code CLI in its own protocol: one fresh home for each case, one or two sessions, with `acpipe serve`."""
import shutil
import time

from cases import sound
from mock_model import ASIDE, DONE, HELLO, SIGNATURE, THOUGHT
from recovery import Life, Recovery, two_turns

UNAVAILABLE = "The AI service is temporarily unavailable. Please try again in a moment."


def live(trial, **options):
    """Returns an acpipe with a live session."""
    life = Life(trial, **options)
    life.ensure()
    return life


def asked(life, message, **more):
    """Sends a prompt and returns its chunks and its summary, which are checked."""
    before = len(life.chunks)
    life.send("session/prompt", {"sessionId": "default", "message": message, **more})
    return until_answered(life, before)


def until_answered(life, before, number=None):
    """Reads until the newest prompt is answered. Returns the chunks of its turn, and its summary."""
    while "result" not in (message := life.read()) or "turnId" not in message["result"]:
        if "error" in message:
            raise ValueError(f"prompt: {message['error']}")
    summary = message["result"]
    chunks = [p["chunk"] for p in life.chunks[before:] if p["turnId"] == summary["turnId"]]
    judge(life.trial, chunks, summary)
    return chunks, summary


def judge(trial, chunks, summary):
    # The text of a failed turn is its error, which is not in the text chunks.
    trial.chunks, trial.summary = chunks, None if summary and summary["isError"] else summary
    trial.notes += sound(trial)
    trial.chunks, trial.summary = [], None


def texts(chunks, kind="text"):
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == f"{kind}-delta")


def of(chunks, kind):
    return [chunk for chunk in chunks if chunk["type"] == kind]


def fine(trial, summary, text):
    trial.expect("text", summary["text"], text)
    trial.expect("stopReason", summary["stopReason"], "end_turn")
    trial.expect("isError", summary["isError"], False)


# ---- the cases

def thinking(trial):
    life = live(trial)
    chunks, summary = asked(life, "think")
    fine(trial, summary, "It is four.")
    trial.expect("thought", texts(chunks, "reasoning"), THOUGHT)
    signed = [chunk for chunk in of(chunks, "reasoning-end") if SIGNATURE in str(chunk.get("providerMetadata"))]
    trial.expect("signatures", len(signed), 1)
    life.end()


def max_turns(trial):
    life = live(trial, maxTurns=1)
    chunks, summary = asked(life, "run bash")
    trial.expect("stopReason", summary["stopReason"], "max_turn_requests")
    trial.expect("last chunk", (chunks[-1]["type"], chunks[-1].get("finishReason")), ("finish", "length"))
    trial.expect("the command ran", len(of(chunks, "tool-output-available")), 1)
    _, summary = asked(life, "say hello")
    fine(trial, summary, HELLO)
    life.end()


def failing(status, kind, words):
    def steps(trial):
        life = live(trial)
        chunks, summary = asked(life, f"fail {status}", retry=True)
        trial.expect("isError", summary["isError"], True)
        trial.expect("last chunk", chunks[-1]["type"], "error")
        [error, *_] = summary["errors"] or [{}]
        trial.expect("kind", error.get("kind"), kind)
        if words not in str(error):
            trial.notes.append(f"error {error}")
        _, summary = asked(life, "say hello")
        fine(trial, summary, HELLO)
        life.end()
    return steps


def subagent(trial):
    life = live(trial)
    chunks, summary = asked(life, "delegate")
    fine(trial, summary, "I will ask. " + DONE)
    trial.expect("finishReason", chunks[-1].get("finishReason"), "stop")
    said = [chunk["data"].get("message") for chunk in of(chunks, "data-subagent")]
    if not any(HELLO in str(message) for message in said):
        trial.notes.append(f"{len(said)} data-subagent, none of them with its words")
    trial.expect("tools", [call["name"] for call in summary["toolCalls"]], ["Agent"])
    life.end()


def next_unprompted(life, before, known):
    """Waits for a chunk of a background turn, and returns the turn's id."""
    while not (new := [p for p in life.chunks[before:] if p["turnId"] not in (None, *known)]):
        life.read()
    return new[0]["turnId"]


def background(trial):
    life = live(trial)
    _, summary = asked(life, "run aside")
    own = summary["turnId"]
    turn = next_unprompted(life, 0, {own})
    while not any(p["turnId"] == turn and p["chunk"]["type"] in ("finish", "abort", "error") for p in life.chunks):
        life.read()
    chunks = [p["chunk"] for p in life.chunks if p["turnId"] == turn]
    judge(trial, chunks, None)
    trial.expect("unprompted text begins", texts(chunks)[:len(ASIDE)], ASIDE)
    trial.expect("last chunk", chunks[-1]["type"], "finish")
    _, summary = asked(life, "say hello")
    fine(trial, summary, HELLO)
    life.end()


def queued(trial):
    """A prompt that arrives during a turn waits for a turn of its own, also during the turn of a background task."""
    life = live(trial)
    first = life.send("session/prompt", {"sessionId": "default", "message": "run aside"})
    second = life.send("session/prompt", {"sessionId": "default", "message": "say hello"})
    answers = {}
    while len(answers) < 2:
        message = life.read()
        if message.get("id") in (first, second):
            answers[message["id"]] = message
    fine(trial, answers[second].get("result", {}), HELLO)
    own = {answer["result"]["turnId"] for answer in answers.values() if "result" in answer}
    next_unprompted(life, 0, own)
    before = len(life.chunks)
    _, summary = asked(life, "say hello")
    fine(trial, summary, HELLO)
    open_turns = {}
    for params in life.chunks:
        kind = params["chunk"]["type"]
        if params["turnId"] and kind in ("start", "finish", "abort", "error"):
            open_turns[params["turnId"]] = kind
    trial.expect("turns that are open", [t for t, kind in open_turns.items() if kind == "start"], [])
    trial.expect("chunks after the prompt", len(life.chunks) > before, True)
    life.end()


def question(trial):
    """No user is there to answer: the agent is informed and continues."""
    life = live(trial)
    chunks, summary = asked(life, "ask me")
    fine(trial, summary, DONE)
    trial.expect("asked", len(of(chunks, "tool-approval-request")), 1)
    life.end()


def two_sessions(trial):
    life = Life(trial)
    for session in ("one", "two"):
        life.call("session/ensure", {"sessionId": session})
    trial.expect("processes", len(life.agents()), 2)
    numbers = {life.send("session/prompt", {"sessionId": s, "message": "say hello"}): s for s in ("one", "two")}
    texts = {}
    while len(texts) < 2:
        message = life.read()
        if message.get("id") in numbers:
            texts[numbers[message["id"]]] = message["result"]["text"]
    trial.expect("texts", texts, {"one": HELLO, "two": HELLO})
    life.call("session/close", {"sessionId": "one"})
    deadline = time.monotonic() + 10
    while len(life.agents()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    trial.expect("processes after a close", len(life.agents()), 1)
    life.end()


def wiped(trial):
    """acpipe's data is deleted: its list shows the agent's own sessions, and one of them is adopted."""
    life, messages = two_turns(trial)
    own = life.call("session/get", {"sessionId": "default"})["agentSessionId"]
    life.end()
    shutil.rmtree(trial.job.home / ".local" / "state")
    life = Life(trial)
    listed = life.call("session/list", {"agent": True, "cwd": str(trial.job.cwd)})["sessions"]
    found = [session for session in listed if session.get("agentSessionId") == own]
    trial.expect("in the list", [session["state"] for session in found], ["foreign"])
    trial.receipt = life.ensure(agentSessionId=own)
    trial.expect("adopted", trial.receipt["adopted"], len(messages))
    plain = lambda found: [(m["role"], "".join(p.get("text", "") for p in m["parts"])) for m in found]
    trial.expect("messages", plain(life.messages()), plain(messages))
    life.quiet()
    life.say(3, remembers={1, 2})
    life.end()


def step(name, steps):
    return Recovery(name, steps)


NATIVE = (
    step("thinking", thinking),
    step("max turns", max_turns),
    step("401", failing(401, "authRequired", "sign in")),
    step("529", failing(529, "session", UNAVAILABLE)),
    step("subagent", subagent),
    step("background task", background),
    step("queued prompt", queued),
    step("question", question),
    step("two sessions", two_sessions),
    step("data wiped", wiped),
)
