"""A client of `acpipe serve` for asyncio. Python 3.11+, no dependencies.

    acpipe = await Acpipe.start("--permissions", "ask")
    await acpipe.call("agent/register", agent="coder", command="opencode", args=["acp"])
    await acpipe.call("session/ensure", sessionId="work", agent="coder")
    async with acpipe.prompt("work", "fix the tests") as turn:
        async for chunk in turn: ...
        summary = await turn.summary()
    await acpipe.close()
"""
import asyncio
import itertools
import json
import sys
import uuid

UNREAD = 1000       # chunks of a turn from which acpipe is not read, so that it slows the agent down


class AcpipeError(Exception):
    """An error of acpipe, or of a turn: `kind` and `data` are for programs, the message is for users."""

    def __init__(self, kind, message, data=None):
        super().__init__(message)
        self.kind = kind
        self.data = data or {}

    @classmethod
    def of_response(cls, error):
        """The error of a response that failed."""
        data = error.get("data") or {}
        return cls(data.get("kind", "internal"), error["message"], data)

    @classmethod
    def of_turn(cls, error):
        """One of a summary's `errors`."""
        return cls(error["kind"], error["message"], error["data"])


class Acpipe:
    """A running `acpipe serve`."""

    @classmethod
    async def start(cls, *options, program="acpipe", env=None, capabilities=None):
        """Starts acpipe with these options of `acpipe serve`."""
        # A process session of its own: Ctrl-C in a terminal reaches this program only. acpipe exits when its stdin closes.
        # The default limit of a line, 64 KiB, is too low: acpipe writes up to 64 MiB.
        child = await asyncio.create_subprocess_exec(
            program, "serve", *options, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            limit=2**27, env=env, start_new_session=True)
        self = cls(child)
        await self.call("initialize", protocolVersion=1, capabilities=capabilities or {})
        return self

    def __init__(self, child):
        self.child = child
        self._numbers = itertools.count(1)
        self._calls = {}                # id of a call → its future
        self._turns = {}                # id of a turn → Turn
        self._running = {}              # id of a session → its running Turn
        self._handlers = {}             # method of a request of acpipe → function that answers it
        self._answering = {}            # id of a request of acpipe → its task
        self._flows = asyncio.Event()   # set while acpipe is read
        self._flows.set()
        self._open = 0                  # number of open calls but prompts
        self._reader = asyncio.create_task(self._read())

    @property
    def is_running(self):
        return self.child.returncode is None and not self._reader.done()

    async def call(self, method, **params):
        """Calls a method; returns its result or raises AcpipeError. Parameters that are None are left out."""
        self._open += 1
        self.flow()                     # the response is behind the unread chunks
        try:
            return await self.request(method, **params)
        finally:
            self._open -= 1

    async def request(self, method, **params):
        """Like call, but its response may wait until chunks are read."""
        if not self.is_running:
            raise AcpipeError("acpipeExited", "acpipe has exited; start it again")
        number = next(self._numbers)
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        params = {name: value for name, value in params.items() if value is not None}
        self._send({"id": number, "method": method, "params": params})
        return await future

    def prompt(self, session_id, message, *, on_activity=None, **params):
        """Starts a turn. `on_activity` is called with the tool that runs, and with None when no tool runs."""
        return Turn(self, session_id, message, on_activity, params)

    def answer(self, method, handler):
        """Answers requests of acpipe: `handler` is an async function from their parameters to the result."""
        self._handlers[method] = handler

    async def close(self):
        """Stops the agents and acpipe."""
        self.child.stdin.close()
        await self._reader
        await self.child.wait()

    def flow(self):
        """Reads acpipe unless a turn has many unread chunks, and nobody waits for anything."""
        unread = [turn.unread for turn in self._turns.values()]
        if self._open or 0 in unread or all(count <= UNREAD for count in unread):
            self._flows.set()
        else:
            self._flows.clear()

    def _send(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self):
        why = "acpipe exited before it answered"
        try:
            async for line in self.child.stdout:
                try:
                    self._receive(json.loads(line))
                except Exception as error:  # such as a line of a wrapper: the next ones are read
                    print(f"cannot use a line of acpipe: {error!r}: {line[:200]!r}", file=sys.stderr)
                await self._flows.wait()
        except ValueError as error:     # a line over the limit
            why = f"cannot read acpipe: {error}"
        for future in self._calls.values():
            if not future.done():
                future.set_exception(AcpipeError("acpipeExited", why))

    def _receive(self, message):
        match message:
            case {"method": "session/chunk", "params": params}:
                if turn := self._turns.get(params["turnId"]):
                    self._running[params["sessionId"]] = turn
                    turn.put(("chunk", params["chunk"]))
            case {"method": "session/activity", "params": params}:
                if turn := self._running.get(params["sessionId"]):
                    turn.put(("activity", params["activity"]))
            case {"method": "$/cancelRequest", "params": params}:
                if task := self._answering.pop(params["id"], None):
                    task.cancel()
            case {"method": method, "id": number, "params": params}:
                self._answering[number] = asyncio.create_task(self._answer(number, method, params))
            case {"id": number, **answer} if number in self._calls:
                future = self._calls.pop(number)
                if future.done():       # its caller was cancelled
                    return
                if "error" in answer:
                    future.set_exception(AcpipeError.of_response(answer["error"]))
                else:
                    future.set_result(answer["result"])

    async def _answer(self, number, method, params):
        try:
            self._send({"id": number, "result": await self._handlers[method](params)})
        except Exception as error:      # acpipe decides by its policy
            self._send({"id": number, "error": {"code": -32603, "message": repr(error)}})
        finally:
            self._answering.pop(number, None)


class Turn:
    """A turn: iterate over its AI SDK chunks. Leaving its `async with` block before its end cancels the turn."""

    def __init__(self, acpipe, session_id, message, on_activity, params):
        self.id = uuid.uuid4().hex
        self.session_id = session_id
        self._acpipe = acpipe
        self._on_activity = on_activity
        self._events = asyncio.Queue()
        self._is_read = True
        self._call = dict(params, sessionId=session_id, turnId=self.id, message=message)

    @property
    def unread(self):
        return self._events.qsize()

    def put(self, event):
        if self._is_read:
            self._events.put_nowait(event)
            self._acpipe.flow()

    async def __aenter__(self):
        self._acpipe._turns[self.id] = self
        self._answer = asyncio.create_task(self._acpipe.request("session/prompt", **self._call))
        self._answer.add_done_callback(lambda _: self.put(("end", None)))
        return self

    async def __aexit__(self, *_):
        self._acpipe._turns.pop(self.id, None)
        self._acpipe.flow()
        if self._acpipe._running.get(self.session_id) is self:
            del self._acpipe._running[self.session_id]
        if not self._answer.done() and self._acpipe.is_running:
            cancel = self._acpipe.call("session/cancel", sessionId=self.session_id, turnId=self.id)
            # Errors are results here: the turn ends in one way or another.
            await asyncio.gather(cancel, self._answer, return_exceptions=True)
        elif self._answer.done() and not self._answer.cancelled():
            self._answer.exception()    # retrieved, so that asyncio does not report it

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            self._acpipe.flow()
            event, content = await self._events.get()
            if event == "chunk":
                return content
            if event == "end":
                self.put(("end", None))     # for the next call
                raise StopAsyncIteration
            if self._on_activity:
                await self._on_activity(content)

    async def summary(self):
        """The turn's summary: text, tools, usage, cost, errors. Raises AcpipeError if the turn could not begin.

        Chunks that were not read before are dropped.
        """
        self._is_read, self._events = False, asyncio.Queue()
        self._acpipe.flow()
        return await asyncio.shield(self._answer)
