"""leashd's flows on acpipe, against scripted agents: python3 -m unittest test_leashd"""
import json
import time

from fakes import END, Case, say
from leashd import CANCELLED, AcpipeAgent, AgentResponse, Allow, Config, Deny, Session, ToolActivity

UNAVAILABLE = "The AI service is temporarily unavailable. Please try again in a moment."
OVERLOADED = {"result": {"is_error": True, "stop_reason": "stop_sequence", "terminal_reason": "api_error", "api_error_status": 529,
                         "api_error_type": "overloaded_error", "result": "API Error: 529 Overloaded"}}
BASH = {"ask": {"tool_name": "Bash", "tool_use_id": "toolu-1", "input": {"command": "ls"}}}


class LeashdTest(Case):
    async def start(self, **config):
        config.setdefault("agent", self.claude())
        agent = AcpipeAgent(Config(**config))
        self.addAsyncCleanup(agent.shutdown)
        return agent

    def session(self, **fields):
        return Session("chat-1", str(self.project), **fields)

    async def run_turn(self, agent, steps, session=None, **callbacks):
        prompt = steps if isinstance(steps, str) else json.dumps(steps)
        return await agent.execute(prompt, session or self.session(), **callbacks)

    async def test_execution_streams_text_and_tools_and_returns_the_summary(self):
        seen = []

        async def text(piece):
            seen.append(piece)

        async def activity(tool):
            seen.append(tool)

        async def gate(tool, arguments, _context):
            seen.append((tool, arguments))
            return Allow()

        agent = await self.start()
        steps = [{"say": "Looking. "}, BASH, {"result": {"num_turns": 2}}]
        response = await self.run_turn(agent, steps, can_use_tool=gate, on_text_chunk=text, on_tool_activity=activity)
        self.assertFalse(response.is_error, response)
        self.assertTrue(response.content.startswith("Looking. "), response)
        self.assertEqual((response.cost, response.num_turns, response.tools_used), (0.25, 2, ["Bash"]))
        self.assertGreaterEqual(response.duration_ms, 0)
        self.assertEqual(response.session_id, self.log()[-1]["session"])
        self.assertEqual(seen[0], "Looking. ")
        self.assertIn(("Bash", {"command": "ls"}), seen)
        tools = [item for item in seen if item is None or isinstance(item, ToolActivity)]
        self.assertEqual([tools[0].tool_name, tools[-1]], ["Bash", None])

    async def test_callbacks_are_optional_and_unknown_values_have_defaults(self):
        agent = await self.start(agent=self.agent([say("hello"), END]))
        response = await self.run_turn(agent, "hi")
        self.assertEqual(response, AgentResponse("hello", session_id="fake-1", duration_ms=response.duration_ms))
        self.assertEqual((response.cost, response.num_turns, response.tools_used), (0.0, 0, []))

    async def test_refusal_reaches_the_model_with_its_message(self):
        async def gate(*_):
            return Deny("not here")

        agent = await self.start()
        response = await self.run_turn(agent, [BASH], can_use_tool=gate)
        answer = json.loads(response.content)
        self.assertEqual((answer["behavior"], answer["message"].endswith("not here")), ("deny", True))

    async def test_tool_is_refused_without_a_gate_and_if_the_gate_fails(self):
        async def fail(*_):
            raise ValueError("broken gate")

        agent = await self.start()
        for gate in None, fail:
            response = await self.run_turn(agent, [BASH], can_use_tool=gate)
            self.assertEqual(json.loads(response.content)["behavior"], "deny")

    async def test_rewritten_input_runs_or_nothing_does(self):
        async def rewrite(*_):
            return Allow(updated_input={"command": "pwd"})

        options = [{"optionId": k, "name": k, "kind": k} for k in ("allow_once", "reject_once")]
        asks = {"ask": {"method": "session/request_permission", "params": {
            "toolCall": {"toolCallId": "c", "title": "Run", "rawInput": {"command": "ls"}}, "options": options}}}
        agent = await self.start(agent=self.agent([asks, {"echoAnswer": True}, END]))
        response = await self.run_turn(agent, "go", can_use_tool=rewrite)
        self.assertIn("reject_once", response.content)

        agent = await self.start()
        answer = json.loads((await self.run_turn(agent, [BASH], Session("chat-2", str(self.project)), can_use_tool=rewrite)).content)
        if agent._rewrites:     # the capability updatedInput of the agent
            self.assertEqual((answer["behavior"], answer["updatedInput"]), ("allow", {"command": "pwd"}))
        else:
            self.assertEqual(answer["behavior"], "deny")

    async def test_plan_is_a_call_of_exit_plan_mode(self):
        asked = []

        async def gate(tool, arguments, _context):
            asked.append((tool, arguments))
            return Deny("shorter") if len(asked) == 1 else Allow()

        plan = {"ask": {"tool_name": "ExitPlanMode", "tool_use_id": "toolu-2", "input": {"plan": "1. Fix"}}}
        agent = await self.start()
        session = self.session(mode="plan")
        refused = await self.run_turn(agent, [plan], session, can_use_tool=gate)
        self.assertIn("shorter", refused.content)
        approved = await self.run_turn(agent, [plan], session, can_use_tool=gate)
        self.assertIn('"allow"', approved.content)
        self.assertEqual(asked, [("ExitPlanMode", {"plan": "1. Fix"})] * 2)

    async def test_configuration_and_mode_become_options_of_claude(self):
        agent = await self.start(system_prompt="Be brief.", max_turns=7, allowed_tools=["Read"], disallowed_tools=["WebFetch"])
        await self.run_turn(agent, "hello", self.session(mode="plan"))
        argv = self.arguments()[0]
        for argument in "--max-turns=7", "--permission-mode=plan":
            self.assertIn(argument, argv)
        self.assertTrue(any(a.startswith("--allowedTools") and "Read" in a for a in argv), argv)
        self.assertTrue(any(a.startswith("--disallowedTools") and "WebFetch" in a for a in argv), argv)
        [system] = [a for a in argv if a.startswith("--append-system-prompt=")]
        self.assertIn("Be brief.", system)
        self.assertIn("ExitPlanMode", system)
        started = [line for line in self.log() if "cwd" in line][-1]
        self.assertEqual(started["cwd"], str(self.project))

    async def test_every_mode_but_plan_and_default_accepts_edits(self):
        agent = await self.start()
        modes = {"auto": "acceptEdits", "edit": "acceptEdits", "test": "acceptEdits", "plan": "plan", "default": "default"}
        for mode in modes:
            response = await agent.execute("hello", Session(mode, str(self.project), mode))
            self.assertEqual(response.content, "hello")
        started = [a for argv in self.arguments() for a in argv if a.startswith("--permission-mode=")]
        self.assertEqual(started, [f"--permission-mode={mode}" for mode in modes.values()])

    async def test_changed_mode_reaches_the_live_session(self):
        agent = await self.start()
        await self.run_turn(agent, "hello", self.session(mode="default"))
        response = await self.run_turn(agent, "hello", self.session(mode="plan"))
        self.assertFalse(response.is_error, response)
        changes = [line["got"]["request"] for line in self.log() if line.get("got", {}).get("type") == "control_request"]
        self.assertEqual([change["mode"] for change in changes if change["subtype"] == "set_permission_mode"], ["plan"])

    async def test_transient_error_is_retried_once_after_two_seconds(self):
        agent = await self.start()
        since = time.monotonic()
        response = await self.run_turn(agent, [{"once": [self.mark(), [OVERLOADED]]}, {"say": "done"}])
        self.assertEqual((response.content, response.is_error), ("done", False))
        self.assertGreaterEqual(time.monotonic() - since, 2)

    async def test_exhausted_retries_give_the_friendly_text(self):
        agent = await self.start()
        response = await self.run_turn(agent, [OVERLOADED])
        self.assertEqual((response.content, response.is_error), (UNAVAILABLE, True))
        prompts = [line for line in self.log() if line.get("got", {}).get("type") == "user"]
        self.assertEqual(len(prompts), 2)

    async def test_other_errors_return_at_once(self):
        agent = await self.start()
        for text in "API Error: 401 authentication_error", "API Error: 400 invalid_request_error":
            failed = {"result": {"is_error": True, "terminal_reason": "api_error", "result": text}}
            response = await self.run_turn(agent, [failed])
            self.assertTrue(response.is_error)
            self.assertTrue(response.content.startswith("Agent error: "), response)
            self.assertLessEqual(len(response.content), len("Agent error: ") + 200)
        prompts = [line for line in self.log() if line.get("got", {}).get("type") == "user"]
        self.assertEqual(len(prompts), 2)

    async def test_session_continues_in_a_new_process(self):
        first = await self.start()
        before = await self.run_turn(first, "hello")
        await first.shutdown()
        after = await self.run_turn(await self.start(), "again")
        self.assertEqual(after.session_id, before.session_id)
        self.assertIn(f"--resume={before.session_id}", self.arguments()[-1])

    async def test_resumed_run_without_turns_is_repeated_in_a_new_session(self):
        first = await self.start()
        before = await self.run_turn(first, "hello")
        await first.shutdown()
        stale = {"once": [self.mark(), [{"result": {"num_turns": 0}}]]}
        after = await self.run_turn(await self.start(), [stale, {"say": "fresh"}])
        self.assertEqual((after.content, after.is_error), ("fresh", False))
        self.assertNotEqual(after.session_id, before.session_id)

    async def test_id_stored_before_the_move_is_resumed(self):
        first = await self.start()
        before = await self.run_turn(first, "hello")
        await first.shutdown()
        agent = await self.start()
        moved = Session("moved", str(self.project), agent_session_id=before.session_id)
        # acpipe has the agent's session under the id chat-1.
        await agent.execute("warm up", Session("other", str(self.project)))
        await agent._acpipe.call("session/clear", sessionId="chat-1")
        after = await agent.execute("again", moved)
        self.assertEqual((after.content, after.session_id), ("again", before.session_id))

    async def test_stale_id_stored_before_the_move_is_dropped(self):
        agent = await self.start()
        stale = "00000000-0000-4000-8000-000000000000"
        response = await self.run_turn(agent, "hello", self.session(agent_session_id=stale))
        self.assertEqual((response.content, response.is_error), ("hello", False))
        self.assertNotEqual(response.session_id, stale)

    async def test_cancel_ends_the_execution_and_the_session_stays_usable(self):
        agent = await self.start()

        async def cancel(_text):
            await agent.cancel("chat-1")

        response = await self.run_turn(agent, [{"delta": "working"}, {"interrupted": True}], on_text_chunk=cancel)
        self.assertEqual((response.content, response.is_error), (CANCELLED, True))
        self.assertEqual((await self.run_turn(agent, "next")).content, "next")

    async def test_cancel_is_harmless_without_an_execution(self):
        agent = await self.start()
        await agent.cancel("chat-1")
        await self.run_turn(agent, "hello")
        await agent.cancel("chat-1")
        await agent.cancel("never seen")

    async def test_crash_delivers_the_text_before_it(self):
        pieces = []

        async def text(piece):
            pieces.append(piece)

        agent = await self.start()
        response = await self.run_turn(agent, [{"delta": "partial"}, {"exit": 1}], on_text_chunk=text)
        self.assertEqual(pieces, ["partial"])
        self.assertEqual((response.content, response.is_error), ("The agent stopped unexpectedly. Please try again.", True))
        self.assertEqual((await self.run_turn(agent, "again")).content, "again")

    async def test_missing_program_is_an_error_response(self):
        agent = await self.start(agent={"command": "no-such-agent"})
        response = await self.run_turn(agent, "hello")
        self.assertTrue(response.is_error)
        self.assertIn("no-such-agent", response.content)

    async def test_shutdown_stops_acpipe_and_a_later_execution_starts_it(self):
        agent = await self.start()
        await self.run_turn(agent, "hello")
        child = agent._acpipe.child
        await agent.shutdown()
        self.assertEqual(child.returncode, 0)
        self.assertEqual((await self.run_turn(agent, "again")).content, "again")
