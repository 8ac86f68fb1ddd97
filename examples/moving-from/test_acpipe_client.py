"""The client module, against scripted agents: python3 -m unittest test_acpipe_client"""
import asyncio
import json

from acpipe_client import UNREAD, Acpipe, AcpipeError
from fakes import END, Case, say


class ClientTest(Case):
    async def start(self, agent, *options, **settings):
        acpipe = await Acpipe.start(*options, **settings)
        self.addAsyncCleanup(acpipe.close)
        await acpipe.call("agent/connect", **agent)
        await acpipe.call("session/ensure", sessionId="s", cwd=str(self.project))
        return acpipe

    def flood(self, *steps):
        """A prompt with more chunks than fit into the pipes."""
        return json.dumps([{"repeat": [5_000, [{"delta": "x" * 200}]]}, *steps])

    async def test_slow_reader_pauses_acpipe_and_gets_every_chunk(self):
        acpipe = await self.start(self.claude())
        text = 0
        # Messages instead of deltas: acpipe merges the deltas of a slow reader, so that too few chunks might be unread.
        messages = json.dumps([{"repeat": [1_500, [{"say": "x" * 200}]]}])
        async with acpipe.prompt("s", messages) as turn:
            async for chunk in turn:
                if not text and chunk["type"] == "text-delta":
                    while acpipe._flows.is_set():       # it does not read until acpipe is paused
                        await asyncio.sleep(0)
                    self.assertLessEqual(turn.unread, UNREAD + 1)
                    await acpipe.call("agent/status")   # calls are answered meanwhile
                text += len(chunk.get("delta", ""))
            self.assertFalse((await turn.summary())["isError"])
        self.assertEqual(text, 300_000)

    async def test_reader_that_leaves_cancels_the_turn(self):
        acpipe = await self.start(self.claude())
        async with acpipe.prompt("s", self.flood({"interrupted": True})) as turn:
            async for chunk in turn:
                if chunk["type"] == "text-delta":
                    break
        self.assertTrue(any(line.get("got", {}).get("request", {}).get("subtype") == "interrupt" for line in self.log()))
        async with acpipe.prompt("s", "next") as turn:
            self.assertEqual((await turn.summary())["text"], "next")

    async def test_summary_needs_no_reader(self):
        acpipe = await self.start(self.claude())
        async with acpipe.prompt("s", self.flood()) as turn:
            self.assertEqual(len((await turn.summary())["text"]), 1_000_000)

    async def test_task_that_is_cancelled_cancels_its_turn(self):
        acpipe = await self.start(self.agent([say("working"), {"wait": "session/cancel"}, {"reply": {"stopReason": "cancelled"}}]))
        begun = asyncio.Event()

        async def run():
            async with acpipe.prompt("s", "go") as turn:
                async for chunk in turn:
                    if chunk["type"] == "text-delta":
                        begun.set()

        task = asyncio.create_task(run())
        await begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertIn("session/cancel", [line.get("method") for line in self.log()])

    async def test_error_response_has_a_kind(self):
        acpipe = await self.start(self.agent())
        with self.assertRaises(AcpipeError) as raised:
            await acpipe.call("session/prompt", sessionId="s", message="hi", turnId="x" * 300)
        self.assertEqual((raised.exception.kind, raised.exception.data["field"]), ("invalidParams", "turnId"))

    async def test_withdrawn_request_is_not_answered(self):
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        asks = {"ask": {"method": "session/request_permission", "params": {"toolCall": {"toolCallId": "c", "title": "Run"}, "options": options}}}
        acpipe = await self.start(self.agent([asks, {"echoAnswer": True}, {"reply": {"stopReason": "cancelled"}}]),
                                  "--permissions", "ask", capabilities={"permissions": True})
        ended = []

        async def wait_for_ever(_asked):
            try:
                await acpipe.call("session/cancel", sessionId="s")
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        acpipe.answer("permission/request", wait_for_ever)
        async with acpipe.prompt("s", "go") as turn:
            self.assertEqual((await turn.summary())["stopReason"], "cancelled")
        self.assertEqual(ended, [True])

    async def test_calls_fail_when_acpipe_exits(self):
        acpipe = await self.start(self.agent([{"hang": True}]))
        async with acpipe.prompt("s", "go") as turn:
            acpipe.child.kill()
            with self.assertRaises(AcpipeError) as raised:
                await turn.summary()
        self.assertEqual(raised.exception.kind, "acpipeExited")
        with self.assertRaises(AcpipeError):
            await acpipe.call("agent/status")
