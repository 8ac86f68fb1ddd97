"""HoloDeck's flows on acpipe, against scripted agents: python3 -m unittest test_holodeck"""
import asyncio
import json
from unittest import mock

import holodeck
from fakes import END, Case, say, tool
from holodeck import AcpipeBackend, AgentConfig, BackendError, BackendInitError, BackendSessionError, BackendTimeoutError, ExecutionResult


class HolodeckTest(Case):
    def setUp(self):
        super().setUp()
        self.pauses = []

        async def pause(seconds):
            self.pauses.append(seconds)

        patch = mock.patch.object(holodeck.asyncio, "sleep", pause)
        patch.start()
        self.addCleanup(patch.stop)

    async def start(self, agent, **config):
        backend = await holodeck.select_backend(AgentConfig("tester", agent, working_directory=str(self.project), **config))
        self.addAsyncCleanup(backend.teardown)
        return backend

    async def test_one_shot_returns_the_whole_turn(self):
        call = tool("call-1", title="Read a", kind="read", status="in_progress", rawInput={"path": "a"})
        done = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed",
                           "content": [{"type": "content", "content": {"type": "text", "text": "alpha"}}]}}
        end = {"reply": {"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}}}
        backend = await self.start(self.agent([say("It is "), call, done, say("alpha."), end]))
        result = await backend.invoke_once("what is a?")
        self.assertEqual(result, ExecutionResult(
            "It is alpha.", [{"name": "read", "arguments": {"path": "a"}, "call_id": "call-1"}],
            [{"call_id": "call-1", "result": "alpha", "is_error": False}],
            {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}))

    async def test_fields_that_the_agent_does_not_report_have_defaults(self):
        backend = await self.start(self.agent([say("hi"), END]))
        result = await backend.invoke_once("hello")
        self.assertEqual(result, ExecutionResult("hi"))
        self.assertEqual((result.token_usage, result.num_turns, result.error_reason), ({}, 1, None))

    async def test_context_comes_before_the_message(self):
        backend = await self.start(self.agent())
        result = await backend.invoke_once("and now?", [{"role": "user", "content": "é"}])
        self.assertTrue(result.response.endswith('[{"role": "user", "content": "é"}]and now?'), result)

    async def test_one_shots_share_no_session_and_leave_none(self):
        backend = await self.start(self.agent())
        await backend.invoke_once("a")
        await backend.invoke_once("b")
        created = [m for m in self.log() if m.get("method") == "session/new"]
        self.assertEqual(len(created), 2)
        self.assertEqual((await backend._acpipe.call("session/list"))["sessions"], [])

    async def test_session_keeps_its_conversation_until_it_is_closed(self):
        backend = await self.start(self.claude())
        session = await backend.create_session()
        for message in "one", "two":
            self.assertEqual((await session.send(message)).response, message)
        await session.close()
        self.assertEqual(len(self.arguments()), 1)
        for _ in range(10_000):         # the process ends soon after
            if not (await backend._acpipe.call("agent/status", agent="tester"))["processes"]:
                break
        else:
            self.fail("the session's process did not end")
        with self.assertRaises(BackendSessionError):
            await session.send("three")

    async def test_streaming_yields_the_pieces_of_the_answer(self):
        backend = await self.start(self.claude())
        session = await backend.create_session()
        steps = [{"delta": "a"}, {"delta": "b"}, {"delta": "c"}]
        pieces = [piece async for piece in session.send_streaming(json.dumps(steps))]
        self.assertEqual("".join(pieces), "abc")

    async def test_answer_of_an_agent_that_does_not_stream_is_one_piece(self):
        backend = await self.start(self.agent([say("all at once"), END]))
        session = await backend.create_session()
        self.assertEqual([piece async for piece in session.send_streaming("hello")], ["all at once"])

    async def test_turns_of_a_session_do_not_overlap(self):
        backend = await self.start(self.agent())
        session = await backend.create_session()
        results = await asyncio.gather(*(session.send(str(n)) for n in range(5)))
        self.assertEqual([result.response for result in results], list("01234"))

    async def test_turns_that_fail_have_the_reasons_of_the_table(self):
        failed = tool("call-1", title="Run", kind="execute", status="failed", rawInput={"command": "x"})
        broken = {"error": {"code": -32603, "message": "it broke"}}
        for turn, reason in [
            ([say("part"), {"reply": {"stopReason": "max_turn_requests"}}], "max_turns limit reached"),
            ([say("part"), {"exit": 3}], "subprocess terminated unexpectedly"),
            ([say("part"), failed, broken], "tool execution failed: execute"),
            ([say("part"), {"wait": "session/cancel"}, {"reply": {"stopReason": "cancelled"}}], "timeout exceeded"),
        ]:
            with self.subTest(reason):
                backend = await self.start(self.agent(turn), timeout_seconds=1 if "timeout" in reason else None)
                session = await backend.create_session()
                result = await session.send("go")
                self.assertEqual((result.response, result.is_error, result.error_reason), ("part", True, reason))
                self.assertEqual(self.pauses, [])
                await backend.teardown()

    async def test_one_shot_is_tried_again_twice_after_a_crash(self):
        crash = {"once": {"mark": self.mark(), "steps": [{"exit": 3}]}}
        again = {"once": {"mark": self.mark(), "steps": [{"exit": 3}]}}
        backend = await self.start(self.agent([crash, again, say("third"), END]))
        self.assertEqual((await backend.invoke_once("go")).response, "third")
        self.assertEqual(self.pauses, [1, 2])

    async def test_one_shot_that_crashes_three_times_raises_with_what_came_before(self):
        backend = await self.start(self.agent([say("part"), {"exit": 3}]))
        with self.assertRaises(BackendSessionError) as raised:
            await backend.invoke_once("go")
        error = raised.exception
        self.assertEqual((error.kind, error.result.response), ("agentExited", "part"))
        self.assertEqual(self.pauses, [1, 2])

    async def test_one_shot_that_takes_too_long_raises_at_once(self):
        turn = [say("part"), {"wait": "session/cancel"}, {"reply": {"stopReason": "cancelled"}}]
        backend = await self.start(self.agent(turn), timeout_seconds=0.2)
        with self.assertRaises(BackendTimeoutError) as raised:
            await backend.invoke_once("go")
        self.assertEqual((raised.exception.result.response, self.pauses), ("part", []))

    async def test_streaming_delivers_the_pieces_then_raises(self):
        backend = await self.start(self.claude())
        session = await backend.create_session()
        pieces = []
        with self.assertRaises(BackendSessionError) as raised:
            async for piece in session.send_streaming(json.dumps([{"delta": "part"}, {"exit": 1}])):
                pieces.append(piece)
        self.assertEqual((pieces, raised.exception.result.response), (["part"], "part"))
        self.assertEqual((await session.send("again")).response, "again")

    async def test_structured_output_is_validated(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        backend = await self.start(self.claude(), response_format=schema)
        good = await backend.invoke_once(json.dumps([{"say": "text"}, {"result": {"structured_output": {"a": 1}}}]))
        self.assertEqual((good.structured_output, good.is_error), ({"a": 1}, False))
        bad = await backend.invoke_once(json.dumps([{"say": "text"}, {"result": {"structured_output": {"a": "one"}}}]))
        self.assertEqual((bool(bad.response), bad.is_error), (True, True))
        self.assertTrue(bad.error_reason.startswith("Structured output schema validation failed: "), bad)
        self.assertEqual(self.pauses, [])

        backend = await self.start(self.agent([say('{"a": 1}'), END]), response_format=schema)
        self.assertEqual((await backend.invoke_once("go")).structured_output, {"a": 1})

    async def test_tools_that_change_something_are_refused_unless_declared(self):
        for config, refused in [({}, ["Bash", "Write", "Edit", "WebFetch"]), ({"tools": ["Bash", "Read"]}, ["Write", "Edit", "WebFetch"]),
                                ({"accept_all_tools": True}, [])]:
            backend = await self.start(self.claude(), **config)
            await backend.invoke_once("hello")
            given = [a.split("=", 1)[1] for a in self.arguments()[-1] if a.startswith("--disallowedTools=")]
            self.assertEqual([tool for line in given for tool in line.split(",")], refused)

    async def test_configuration_reaches_the_agent(self):
        backend = await self.start(self.claude(), instructions="Be brief.", model="haiku", max_turns=20)
        await backend.invoke_once("hello")
        argv = self.arguments()[0]
        for argument in "--model=haiku", "--max-turns=20":
            self.assertIn(argument, argv)
        self.assertTrue(any(a.startswith("--append-system-prompt=") and "Be brief." in a for a in argv), argv)

    async def test_agent_that_cannot_start_is_an_init_error(self):
        for agent in {"command": "no-such-agent"}, self.agent(start=[{"stderr": "no licence"}, {"exit": 1}]):
            with self.assertRaises(BackendInitError):
                await self.start(agent)

    async def test_calls_out_of_order_are_errors(self):
        backend = AcpipeBackend(AgentConfig("tester", self.agent()))
        with self.assertRaises(BackendError):
            await backend.create_session()
        with self.assertRaises(BackendError):
            await backend.invoke_once("go")
        await backend.teardown()
        for error in BackendInitError, BackendSessionError, BackendTimeoutError:
            self.assertTrue(issubclass(error, BackendError))
