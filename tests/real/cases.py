"""Prompts for every agent and the expected results, the same for `run` and `serve`."""
import re

from mock_model import DONE, HELLO, OUTPUT

NEVER_ASKS = "it asks for no permission"
GRACE = 10      # seconds: acpipe gives an agent 2 to leave by itself, 3 more after TERM, then kills it


class Turn:
    """Result of one prompt through one acpipe process."""

    def __init__(self):
        self.chunks = []            # AI SDK UIMessageChunks in order
        self.summary = None         # of the turn, if this client returns one
        self.notes = []             # violations of the protocol
        self.outputs = True         # the agent reports the output of commands
        self.asks = True            # the agent requests permission before it runs a command
        self.proof = False          # the shell command really ran: its file is there
        self.ended = None           # seconds from the start of acpipe to the last chunk
        self.cancelled = None       # ... to the cancel, or to the abrupt end
        self.exited = None          # ... to its exit
        self.code = None            # acpipe's exit code
        self.groups = set()         # process groups of acpipe and of the agent it started
        self.left = []              # processes alive right after acpipe's exit
        self.stayed = []            # those of them alive a second later

    def of(self, kind):
        return [chunk for chunk in self.chunks if chunk.get("type") == kind]

    @property
    def text(self):
        if self.chunks:
            return "".join(chunk["delta"] for chunk in self.of("text-delta"))
        return (self.summary or {}).get("text", "")

    @property
    def end(self):
        last = self.chunks[-1] if self.chunks else {}
        if last.get("type") == "finish" or not self.chunks and self.summary:
            return (last or self.summary).get("finishReason")
        return {"abort": "cancelled", "error": f"error: {last.get('errorText')}"}.get(last.get("type"), "no end")

    def ours(self):
        """Returns the processes left that acpipe could reach: the others left the agent's process group."""
        return [process for process in self.left if process.group in self.groups]

    def blame(self):
        """Returns the processes left in two groups, each with the reason why they are there."""
        theirs = [process for process in self.left if process not in self.ours()]
        return ("acpipe's fault", self.ours()), ("left the agent's group", theirs)


# ---- the verdicts: each yields the faults

def with_a_call(turn):
    return [chunk for chunk in turn.chunks if "toolCallId" in chunk]


def sound(turn):
    """Checks every turn that ends, however it ends."""
    kinds = [chunk.get("type") for chunk in turn.chunks]
    if kinds and kinds[0] != "start":
        yield f"first chunk {kinds[0]}"
    if kinds and (kinds[-1] not in ("finish", "abort", "error") or kinds.count("start") != 1):
        yield f"{kinds.count('start')} starts, last chunk {kinds[-1]}"
    done = {c["toolCallId"] for c in turn.chunks if c["type"].startswith("tool-output-") and not c.get("preliminary")}
    for call in {chunk["toolCallId"] for chunk in with_a_call(turn)} - done:
        yield f"tool {call} has no outcome"
    for block in {c["id"] for c in turn.of("text-start")} - {c["id"] for c in turn.of("text-end")}:
        yield f"text {block} never ends"
    if turn.chunks and turn.summary:
        if turn.summary["text"] != turn.text:
            yield f"summary: text {turn.summary['text'][-40:]!r}, chunks {turn.text[-40:]!r}"
        if {call["callId"] for call in turn.summary["toolCalls"]} != {c["toolCallId"] for c in with_a_call(turn)}:
            yield "summary: other tool calls than the chunks"


def clean(turn):
    """Checks every acpipe process."""
    yield from turn.notes
    if turn.ours():
        yield f"{len(turn.ours())} left behind in the agent's group"
    if turn.code is None:
        yield "acpipe did not exit"
    elif turn.exited - turn.ended > GRACE:
        yield f"exit took {turn.exited - turn.ended:.0f} s"


def answered(turn):
    if turn.end != "stop":
        yield f"ended {turn.end}"
    if turn.code != 0:
        yield f"exit code {turn.code}"
    if turn.summary and (turn.summary["isError"] or turn.summary["stopReason"] != "end_turn"):
        yield f"summary: stopReason {turn.summary['stopReason']}, isError {turn.summary['isError']}"


def said_hello(turn):
    yield from answered(turn)
    if turn.text != HELLO:
        yield f"text {turn.text!r}"
    if turn.summary and turn.summary["text"] != HELLO:
        yield f"summary: text {turn.summary['text']!r}"


def ran_the_tool(turn):
    yield from answered(turn)
    if not turn.proof:
        yield "the command did not run"
    if turn.asks and not turn.of("tool-approval-request"):
        yield "no permission asked"
    if [chunk["approved"] for chunk in turn.of("tool-approval-response")] != [True] * turn.asks:
        yield "not approved once" if turn.asks else "it asks, against its entry in agents.py"
    if not any(not chunk.get("preliminary") for chunk in turn.of("tool-output-available")):
        yield "no tool output"
    results = [str(call["result"]) for call in (turn.summary or {}).get("toolResults", [])]
    if turn.summary and turn.outputs and not any(re.search(rf"\b{OUTPUT}\b", result) for result in results):
        yield f"toolResults {results} without the command's output"
    if not turn.text.endswith(DONE):
        yield f"text ends {turn.text[-40:]!r}"


def was_refused(turn):
    if turn.end not in ("stop", "cancelled"):       # agents differ: some continue, some end the turn
        yield f"ended {turn.end}"
    if turn.proof:
        yield "THE COMMAND RAN"
    if [chunk["approved"] for chunk in turn.of("tool-approval-response")] != [False]:
        yield "not refused once"
    if not turn.of("tool-output-denied"):
        yield "no tool-output-denied"
    if turn.code != 0 and (turn.code, turn.end) != (1, "cancelled"):      # a cancel that was not requested is a failure
        yield f"exit code {turn.code}"


def was_cancelled(turn):
    if turn.cancelled is None:
        yield f"ended {turn.end} before the cancel"
    elif turn.end != "cancelled":
        yield f"ended {turn.end}"
    elif turn.ended - turn.cancelled > 5:
        yield f"cancel took {turn.ended - turn.cancelled:.0f} s"
    if turn.summary and turn.summary["stopReason"] != "cancelled":
        yield f"summary: stopReason {turn.summary['stopReason']}"


def was_left(turn):
    """Checks a turn that was cut off; its stream may stop anywhere."""
    if turn.cancelled is None:
        yield f"ended {turn.end} before the end was asked for"
    elif turn.code is not None and turn.exited - turn.cancelled > GRACE:
        yield f"exit took {turn.exited - turn.cancelled:.0f} s"


def lasted(seconds):
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Case:
    def __init__(self, name, prompt, verdict, seconds, permissions="approve", cancel_when=None, abrupt=False):
        self.name, self.prompt, self.permissions = name, prompt, permissions
        self.cancel_when = cancel_when      # the moment, which depends on the chunks so far
        self.abrupt = abrupt                # at that moment no cancel but SIGINT twice, or end of input
        self.verdict = verdict
        self.seconds = seconds              # the duration that the table shows

    def not_offered(self, agent):
        """Returns the reason why the case does not apply to this agent, or None."""
        return NEVER_ASKS if self.permissions == "deny" and not agent.asks else None

    def faults(self, turn):
        return [*self.verdict(turn), *(() if self.abrupt else sound(turn)), *clean(turn)]

    def outcome(self, turn):
        word = f"exit {turn.code}" if self.name.startswith("exit") else turn.end
        return f"ok ({word}, {lasted(self.seconds(turn))})"


def few_words(turn):
    return len(turn.of("text-delta")) >= 3


def tool_runs(turn):
    return turn.proof


CASES = (
    Case("hello", "say hello", said_hello, lambda turn: turn.ended),
    Case("tool allowed", "run bash", ran_the_tool, lambda turn: turn.ended),
    Case("tool refused", "run bash", was_refused, lambda turn: turn.ended, permissions="deny"),
    Case("cancel", "slow", was_cancelled, lambda turn: turn.ended - turn.cancelled, cancel_when=few_words),
    Case("cancel in tool", "run forever", was_cancelled, lambda turn: turn.ended - turn.cancelled,
         cancel_when=tool_runs),
    Case("exit", "say hello", said_hello, lambda turn: turn.exited - turn.ended),
    Case("exit in tool", "run forever", was_left, lambda turn: turn.exited - turn.cancelled, cancel_when=tool_runs,
         abrupt=True),
)
