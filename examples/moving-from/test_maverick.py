"""Maverick's flows on acpipe, against scripted agents: python3 -m unittest test_maverick"""
import builtins
import json
import os
import time
from unittest import mock

import maverick
from fakes import END, Case, say, tool
from maverick import (AgentContext, AgentError, AgentRegistry, AgentResult, AgentUsage, AssistantMessage, CLINotFoundError,
                      DuplicateAgentError, InvalidToolError, MalformedResponseError, MaverickAgent, NetworkError, ProcessError,
                      ResultMessage, StreamingError, TextBlock, ToolResultBlock, ToolUseBlock, extract_all_text, extract_text)


class Greeter(MaverickAgent):
    """The least that an agent needs."""

    def __init__(self, **config):
        super().__init__("greeter", "You greet.", **config)

    async def execute(self, context):
        return await self.run("hello", context)


class MaverickTest(Case):
    def start(self, agent, **config):
        agent = Greeter(agent=agent, **config)
        self.addAsyncCleanup(agent.close)
        return agent

    def context(self, **fields):
        return AgentContext(str(self.project), **fields)

    async def collect(self, agent, prompt="go"):
        """The messages of a query, and its error or None."""
        messages = []
        try:
            async for message in agent.query(prompt, cwd=str(self.project)):
                messages.append(message)
        except AgentError as error:
            return messages, error
        return messages, None

    async def test_minimal_agent_returns_a_structured_result(self):
        agent = self.start(self.claude())
        result = await agent.execute(self.context(branch="main"))
        self.assertEqual((result.success, result.output, result.errors), (True, "hello", []))
        self.assertEqual(result.metadata["branch"], "main")
        usage = result.usage
        self.assertEqual((usage.input_tokens, usage.output_tokens, usage.total_cost_usd), (3, 4, 0.25))
        argv = self.arguments()[0]
        self.assertTrue(any(a.startswith("--append-system-prompt=") and "You greet." in a for a in argv), argv)
        self.assertEqual([line for line in self.log() if "cwd" in line][-1]["cwd"], str(self.project))

    async def test_unknown_figures_are_none(self):
        result = await self.start(self.agent([say("hi"), END])).execute(self.context())
        self.assertEqual(result.usage, AgentUsage(duration_ms=result.usage.duration_ms))
        self.assertIsNone(result.usage.total_cost_usd)

    async def test_query_yields_messages_before_the_turn_ends(self):
        call = tool("call-1", title="Read a", kind="read", status="in_progress", rawInput={"path": "a"})
        done = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed", "rawOutput": "alpha"}}
        agent = self.start(self.agent([say("Reading."), call, {"wait": "session/cancel"}, done, END]))
        messages = []
        async for message in agent.query("go", cwd=str(self.project)):
            messages.append(message)
            if len(messages) == 2:      # the agent waits until it is cancelled
                self.assertEqual(messages[0], AssistantMessage([TextBlock("Reading.")]))
                self.assertEqual(messages[1], AssistantMessage([ToolUseBlock("call-1", "read", {"path": "a"})]))
                [session] = (await agent._acpipe.call("session/list"))["sessions"]
                await agent._acpipe.call("session/cancel", sessionId=session["sessionId"])
        self.assertTrue(any(isinstance(m.content[0], ToolResultBlock) for m in messages[2:-1]), messages)
        self.assertIsInstance(messages[-1], ResultMessage)

    async def test_query_that_is_left_is_cancelled(self):
        agent = self.start(self.agent([say("one"), tool("call-1", title="x"), {"wait": "session/cancel"}, END]))
        messages = agent.query("go", cwd=str(self.project))
        await anext(messages)
        await messages.aclose()
        self.assertIn("session/cancel", [line.get("method") for line in self.log()])

    async def test_partial_content_comes_before_the_error(self):
        closed = [say("partial"), {"closeStdout": True}, {"hang": True}]
        for turn in [say("partial"), {"exit": 3}], closed:
            agent = self.start(self.agent(turn))
            messages, error = await self.collect(agent)
            self.assertEqual(extract_all_text(messages), "partial")
            self.assertIsInstance(error, StreamingError)
            result = await agent.execute(self.context())
            self.assertEqual((result.success, result.output, len(result.errors)), (False, "partial", 1), result)
            self.assertGreaterEqual(result.usage.duration_ms, 0)

    async def test_failures_have_the_errors_of_the_table(self):
        offline = {"error": {"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:443"}}
        slow = [{"wait": "session/cancel"}, {"reply": {"stopReason": "cancelled"}}]
        for wanted, agent, config in [
            (CLINotFoundError, {"command": "no-such-agent"}, {}),
            (ProcessError, self.agent([{"stderr": "Error: out of luck"}, {"exit": 3}]), {}),
            (maverick.TimeoutError, self.agent(slow), {"timeout_seconds": 0.2}),
            (NetworkError, self.agent([offline]), {}),
            (MalformedResponseError, self.agent([{"reply": {"stopReason": 5}}]), {}),
        ]:
            with self.subTest(wanted.__name__):
                started = self.start(agent, **config)
                result = await started.execute(self.context())
                self.assertEqual((result.success, [type(e) for e in result.errors]), (False, [wanted]), result)
                [error] = result.errors
                self.assertTrue(str(error))
                if wanted is CLINotFoundError:
                    self.assertIn("no-such-agent", str(error))
                if wanted is ProcessError:
                    self.assertEqual((error.exit_code, error.stderr.strip()), (3, "Error: out of luck"))
                if wanted is MalformedResponseError:
                    self.assertIn("5", json.dumps(error.raw_response))
                await started.close()

    async def test_missing_acpipe_is_a_missing_program(self):
        agent = self.start(self.claude())
        with mock.patch.dict(os.environ, PATH="/nonexistent"):
            _, error = await self.collect(agent)
        self.assertIsInstance(error, CLINotFoundError)
        self.assertIn("acpipe", str(error))

    async def test_nothing_is_tried_again(self):
        overloaded = {"result": {"is_error": True, "terminal_reason": "api_error", "api_error_status": 529, "result": "529 Overloaded"}}
        since = time.monotonic()
        _, error = await self.collect(self.start(self.claude()), json.dumps([overloaded]))
        self.assertIsInstance(error, AgentError)
        self.assertLess(time.monotonic() - since, 2)
        self.assertEqual(len([line for line in self.log() if line.get("got", {}).get("type") == "user"]), 1)

    async def test_tools_are_checked_when_the_agent_is_made(self):
        Greeter(allowed_tools=["Read", "mcp__db__query"], mcp_servers=[{"name": "db", "command": "db"}])
        for wrong in "Raed", "mcp__web__get":
            with self.assertRaises(InvalidToolError) as raised:
                Greeter(allowed_tools=["Read", wrong], mcp_servers=[{"name": "db", "command": "db"}])
            for named in wrong, "NotebookEdit", "mcp__db__*":
                self.assertIn(named, str(raised.exception))

    async def test_permission_modes_decide_on_tools(self):
        def ask(kind, name, arguments):
            options = [{"optionId": k, "name": k, "kind": k} for k in ("allow_once", "reject_once")]
            call = {"toolCallId": name, "title": name, "kind": kind, "rawInput": arguments}
            return [{"ask": {"method": "session/request_permission", "params": {"toolCall": call, "options": options}}}, {"echoAnswer": True}]

        turn = [*ask("execute", "Bash", {"command": "ls"}), *ask("read", "Read", {"path": "a"}), END]
        for config, allowed in [({"allowed_tools": ["Read"]}, [False, True]), ({"permission_mode": "auto_approve"}, [True, True]),
                                ({"permission_mode": "deny_dangerous"}, [False, True])]:
            result = await self.start(self.agent(turn), **config).execute(self.context())
            answers = [part.startswith("allow_once") for part in result.output.split('"optionId":"')[1:]]
            self.assertEqual(answers, allowed, (config, result))

    async def test_agents_are_found_and_made_by_name(self):
        registry = AgentRegistry()

        @registry.register("reviewer")
        class Reviewer(MaverickAgent):
            def __init__(self, **config):
                super().__init__("reviewer", "You review.", **config)

            async def execute(self, context):
                return await self.run("review", context)

        registry.register("greeter", Greeter)
        self.assertEqual(registry.list_agents(), ["greeter", "reviewer"])
        self.assertIs(registry.get("reviewer"), Reviewer)
        for name, output in ("reviewer", "review"), ("greeter", "hello"):
            agent = registry.create(name, agent=self.agent())
            self.addAsyncCleanup(agent.close)
            self.assertTrue((await agent.execute(self.context())).output.endswith(output))
        with self.assertRaises(DuplicateAgentError):
            registry.register("greeter", Reviewer)
        with self.assertRaises(AgentError) as raised:
            registry.get("writer")
        self.assertIn("greeter, reviewer", str(raised.exception))

    async def test_text_is_extracted_without_tools(self):
        mixed = AssistantMessage([TextBlock("one"), ToolUseBlock("t", "Read", {}), TextBlock("two")])
        self.assertEqual(extract_text(mixed), "one\ntwo")
        self.assertEqual(extract_all_text([mixed, AssistantMessage([ToolResultBlock("t", "no")]), AssistantMessage([TextBlock("three")])]),
                         "one\ntwo\n\nthree")

    async def test_values_that_contradict_themselves_are_refused(self):
        with self.assertRaises(ValueError):
            AgentResult(False, "", AgentUsage())
        with self.assertRaises(ValueError):
            AgentUsage(input_tokens=-1)
        self.assertTrue(issubclass(maverick.TimeoutError, builtins.TimeoutError))
