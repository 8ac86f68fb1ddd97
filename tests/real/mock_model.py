#!/usr/bin/env python3
"""A model on loopback that answers by script, in the four API dialects that agents use.

    mock_model.py [PORT]        default 8500; Ctrl-C ends it

The last user message chooses the answer, with a line that holds only a keyword:

    say hello      a text in four pieces
    run bash       one call of the agent's shell tool; a text after its result
    write file P   one call of the agent's tool that writes files, for the absolute path P; a text after its result
    run plain      like `run bash`, inside the agent's own sandbox if it has one
    run forever    like `run bash`, with a command that never ends
    slow           a text of 120 pieces in 30 seconds
    think          a thought in three pieces, then a text (Anthropic only, as all below)
    delegate       one subagent in the foreground, with the prompt `say hello`
    run aside      the shell tool in the background; a slow text when the agent reports its end
    ask me         a question to the user, by the agent's tool
    fail 401 …     an error with that status
    big 2000       a text of that many pieces

Without a keyword, the prompts of `acpipe doctor --probe` are obeyed (`PROBES`).
A request without tools belongs to no turn (titles, routing) and gets one word, or JSON of the requested schema.
Marks (zebra-1, zebra-2 …) choose no answer: the marks in a request show what its agent remembers.
"""
import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HELLO = "Hello, world! ✓"
DONE = "The tool is done."
PROOF = "ran.txt"       # the file that a shell command writes to the agent's working directory
OUTPUT = "42"           # output of the command, which does not contain this text
COMMANDS = {"run bash": f"expr 40 + 2 && touch {PROOF}", "run forever": f"touch {PROOF} && tail -f /dev/null"}
THOUGHT, ASIDE = "Two and two, is that four?", "The background is done. "
SIGNATURE = "c2lnbmVk"
QUESTION = {"question": "Which colour?", "header": "Colour", "multiSelect": False,
            "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}
ASKERS = ("AskUserQuestion", "ask_user_question")
KINDS = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell", "shell_command", "Shell", "terminal", "execute",
          "execute_bash", "run_commands", "execute_command")
WRITERS = ("Write", "write", "write_file", "WriteFile", "create_file", "create", "write_to_file", "write_text_file", "editor", "file_editor",
           "str_replace_editor", "apply_patch")
PROBES = {re.compile("Run the shell command `(.+?)`"): lambda ask, command: shell(ask.tools, command),
          re.compile(r"Write the numbers from 1 to (\d+)"): lambda _, most: count(int(most)),
          re.compile(r"Reply with the word (\w+)"): lambda _, word: Text(word)}
FREE = {"type": "string"}      # in place of the schema of a tool that takes text
MARK = re.compile(r"zebra-(\d)")
KEYWORD = re.compile(r"^\W*(say hello|run bash|run plain|run forever|slow|think|delegate|run aside|ask me|write file \S+|fail \d+|big \d+)\W*$", re.M)


# ---- requests and answers, in all dialects

class Ask:
    def __init__(self, text, tools, answered, schema=None):
        self.text = text            # of the last user message
        self.tools = tools          # name -> schema of its parameters
        self.answered = answered    # the conversation ends in a tool's result
        self.schema = schema        # of the JSON wanted in place of text

    def keyword(self):
        found = KEYWORD.findall(self.text)
        return found[-1] if found else None


class Text:
    def __init__(self, *pieces, pause=0.0):
        self.whole, self._pieces, self._pause = "".join(pieces), pieces, pause

    def __iter__(self):
        for piece in self._pieces:
            yield piece
            time.sleep(self._pause)


class Thought(Text):
    pass


class Failure:
    """An HTTP error in place of an answer."""

    def __init__(self, status):
        self.status, kind = status, KINDS.get(status, "api_error")
        self.error = {"type": "error", "error": {"type": kind, "message": f"mock {status}"}}


class Call:
    def __init__(self, name, arguments, free=None):
        self.name, self.arguments, self.json = name, arguments, json.dumps(arguments)
        self.free = free            # text in place of arguments, for a tool without a schema


def script(ask):
    """Returns the blocks of the answer."""
    if ask.schema:
        return [Text(json.dumps(example(ask.schema)))]
    if not ask.tools:
        return [Text("ok")]
    if ask.answered:
        return [Text(*re.findall(r"\S+\s*", DONE))]
    keyword = ask.keyword() or ""
    word, _, number = keyword.partition(" ")
    if word == "fail":
        return [Failure(int(number))]
    if word == "big":
        return [Text(*(f"w{n} " for n in range(int(number))))]
    if keyword == "think":
        return [Thought("Two and two, ", "is that ", "four?"), Text("It is four.")]
    if keyword == "delegate":
        name = next((name for name in ("Agent", "Task") if name in ask.tools), "Agent")
        return [Text("I will ", "ask. "), Call(name, {
            "description": "greet", "subagent_type": "general-purpose", "prompt": "say hello",
            "run_in_background": False})]
    if keyword == "ask me":
        name = next((name for name in ASKERS if name in ask.tools), None)
        return [Call(name, {"questions": [QUESTION]}) if name else Text("No tool that asks.")]
    if keyword == "run aside":
        return [Call("Bash", {"command": "sleep 1; echo out", "description": "work aside", "run_in_background": True})]
    if "<task-notification>" in ask.text:
        return [Text(*re.findall(r"\S+\s*", ASIDE), *(f"tick {n} " for n in range(8)), pause=0.25)]
    if keyword == "slow":
        return [Text(*(f"tick {n} " for n in range(120)), pause=0.25)]
    if keyword in COMMANDS:
        return [Text("I will ", "run it."), shell(ask.tools, COMMANDS[keyword])]
    if keyword == "run plain":
        return [Text("I will ", "run it."), shell(ask.tools, COMMANDS["run bash"], escalated=False)]
    if keyword.startswith("write file "):
        return [Text("I will ", "write it."), write(ask.tools, keyword.removeprefix("write file "))]
    if keyword == "say hello":
        return [Text("Hello", ", ", "world", "! ✓")]
    for prompt, answer in PROBES.items():
        if found := prompt.search(ask.text):
            return [answer(ask, found[1])]
    return [Text("No keyword.")]


def count(most):
    return Text(*(f"{number}\n" for number in range(1, most + 1)), pause=0.05)


def shell(tools, command, escalated=True):
    """Returns a call of the offered shell tool, with arguments that fit its schema."""
    name = next((name for name in SHELLS if name in tools), None)
    if not name:
        return Text(f"No shell tool among {sorted(tools)}.")
    known = tools[name].get("properties", {})
    key = next((key for key in ("cmd", "commands") if key in known), "command")
    if key == "commands":
        command = [command]
    elif str(known.get(key, {}).get("type")).lower() == "array":
        command = ["bash", "-lc", command]
    others = {other: example(known.get(other, {})) for other in tools[name].get("required", []) if other != key}
    if escalated and "sandbox_permissions" in known:      # Codex requests permission for commands outside its own sandbox
        others |= {"sandbox_permissions": "require_escalated", "justification": "to write a file"}
    return Call(name, {**others, key: command})


def write(tools, path):
    """Returns a call of the offered tool that writes a file, else of the shell tool with a patch, which Codex takes for an edit."""
    name = next((name for name in WRITERS if name in tools), None)
    patch = f"*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n"
    if not name:
        return shell(tools, f"apply_patch <<'EOF'\n{patch}EOF", escalated=False)
    if tools[name] is FREE:
        return Call(name, {}, patch)
    known = tools[name].get("properties", {})
    values = {"path": path, "file_path": path, "filePath": path, "absolute_path": path, "content": "written\n",
              "contents": "written\n", "file_text": "written\n", "new_text": "written\n", "input": patch, "patch": patch,
              "command": "create"}
    arguments = {key: example(known.get(key, {})) for key in tools[name].get("required", [])}
    return Call(name, {**arguments, **{key: value for key, value in values.items() if key in known}})


def example(schema):
    """Returns the smallest value that a JSON schema allows."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: example(inner) for name, inner in schema.get("properties", {}).items()}
    return {"array": [], "boolean": False, "integer": 0, "number": 0}.get(kind, "mock")


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if isinstance(part.get("text"), str))


def last(messages, wanted):
    return next((message for message in reversed(messages) if wanted(message)), {})


# ---- the dialects: read a request, write the answer as server-sent events (name or None, data)

class Anthropic:
    path = re.compile(r"/messages$")
    usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}

    def read(self, body):
        user = last(body["messages"], lambda message: message["role"] == "user").get("content", "")
        parts = [part for part in user if isinstance(part, dict)]
        results = [at for at, part in enumerate(parts) if part["type"] == "tool_result"]
        # If a turn was cut off after a tool, the next prompt is in the same message as its result.
        answered = bool(results) and not KEYWORD.search(text_of(parts[results[-1] + 1:]))
        tools = {tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools", [])}
        return Ask(text_of(user), tools, answered, body.get("output_config", {}).get("format", {}).get("schema"))

    def message(self, number, body, **more):
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
                "stop_reason": None, "stop_sequence": None, "usage": self.usage, **more}

    def whole(self, number, body, blocks):
        content = [{"type": "text", "text": block.whole} for block in blocks if type(block) is Text]
        return self.message(number, body, content=content, stop_reason="end_turn")

    def events(self, number, body, blocks):
        def event(kind, **fields):
            return kind, {"type": kind, **fields}

        yield event("message_start", message=self.message(number, body))
        stop = "end_turn"
        for index, block in enumerate(blocks):
            if isinstance(block, Call):
                stop = "tool_use"
                yield event("content_block_start", index=index, content_block={
                    "type": "tool_use", "id": f"toolu_{number}_{index}", "name": block.name, "input": {}})
                yield event("content_block_delta", index=index, delta={
                    "type": "input_json_delta", "partial_json": block.json})
            else:
                kind, more = ("thinking", {"signature": ""}) if isinstance(block, Thought) else ("text", {})
                yield event("content_block_start", index=index, content_block={"type": kind, kind: "", **more})
                for piece in block:
                    yield event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
                if more:
                    yield event("content_block_delta", index=index, delta={
                        "type": "signature_delta", "signature": SIGNATURE})
            yield event("content_block_stop", index=index)
        yield event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=self.usage)
        yield event("message_stop")


class ChatCompletions:
    path = re.compile(r"/chat/completions$")

    def read(self, body):
        messages = body["messages"]
        tools = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools", [])}
        # Kimi Code puts reminders behind the prompt, as further messages of the user.
        from_last = itertools.dropwhile(lambda message: message["role"] not in ("user", "tool"), reversed(messages))
        user = itertools.takewhile(lambda message: message["role"] == "user", from_last)
        text = "\n".join(text_of(message.get("content")) for message in [*user][::-1])
        return Ask(text, tools, messages[-1]["role"] == "tool")

    def whole(self, number, body, blocks):
        message = {"role": "assistant", "content": "".join(b.whole for b in blocks if isinstance(b, Text))}
        calls = [{"id": f"call_{number}", "type": "function", "function": {"name": b.name, "arguments": b.json}}
                 for b in blocks if isinstance(b, Call)]
        choice = {"index": 0, "message": {**message, **({"tool_calls": calls} if calls else {})},
                  "finish_reason": "tool_calls" if calls else "stop"}
        return {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0, "model": body["model"],
                "choices": [choice],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}

    def events(self, number, body, blocks):
        def chunk(delta, finish=None, **more):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return None, {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0,
                          "model": body["model"], "choices": [choice], **more}

        finish = "stop"
        for block in blocks:
            if isinstance(block, Call):
                finish = "tool_calls"
                function = {"name": block.name, "arguments": block.json}
                call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
                yield chunk({"role": "assistant", "tool_calls": [call]})
            else:
                for piece in block:
                    yield chunk({"role": "assistant", "content": piece})
        yield chunk({}, finish, usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
        yield None, "[DONE]"


class Responses:
    path = re.compile(r"/responses$")

    def read(self, body):
        items = body["input"]
        # Codex lists its tools in the conversation for its newer models.
        listed = [tool for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
        listed += body.get("tools", [])
        tools = {tool["name"]: FREE if tool.get("type") == "custom" else tool.get("parameters", {})
                 for tool in listed if tool.get("name")}
        user = last(items, lambda item: item.get("role") == "user")
        # Codex may put a note for the model after a tool's result.
        end = last(items, lambda item: item.get("role") not in ("developer", "system"))
        # Codex creates the name of a session with a request that has a schema, possibly during the next turn.
        schema = body.get("text", {}).get("format", {}).get("schema")
        return Ask(text_of(user.get("content")), tools, end.get("type", "").endswith("_output"), schema)

    def events(self, number, body, blocks):
        def event(kind, **fields):
            return kind, {"type": kind, **fields}

        response = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": body["model"]}
        yield event("response.created", response={**response, "status": "in_progress", "output": []})
        output = []
        for index, block in enumerate(blocks):
            if isinstance(block, Call):
                kind, words = ("function_call", {"arguments": block.json}) if block.free is None else (
                    "custom_tool_call", {"input": block.free})
                item = {"type": kind, "id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}",
                        "name": block.name, **words, "status": "completed"}
                yield event("response.output_item.added", output_index=index, item=item)
            else:
                item = {"type": "message", "id": f"msg_{number}_{index}", "role": "assistant", "content": []}
                place = {"item_id": item["id"], "output_index": index, "content_index": 0}
                yield event("response.output_item.added", output_index=index, item=item)
                for piece in block:
                    yield event("response.output_text.delta", **place, delta=piece)
                item = {**item, "content": [{"type": "output_text", "text": block.whole, "annotations": []}]}
            output.append(item)
            yield event("response.output_item.done", output_index=index, item=item)
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        response = {**response, "status": "completed", "output": output, "usage": usage}
        yield event("response.completed", response=response)


class Gemini:
    path = re.compile(r":(streamG|g)enerateContent$")

    def read(self, body):
        user = last(body["contents"], lambda message: message.get("role") == "user").get("parts", [])
        declared = [tool for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])]
        tools = {tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") or {} for tool in declared}
        config = body.get("generationConfig", {})
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        return Ask(text_of(user), tools, any("functionResponse" in part for part in user), schema)

    def chunk(self, part, **more):
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, **more}],
                "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}}

    def whole(self, number, body, blocks):
        return self.chunk({"text": "".join(b.whole for b in blocks if isinstance(b, Text))}, finishReason="STOP")

    def events(self, number, body, blocks):
        for block in blocks:
            if isinstance(block, Call):
                call = {"id": f"call_{number}", "name": block.name, "args": block.arguments}
                yield None, self.chunk({"functionCall": call})
            else:
                for piece in block:
                    yield None, self.chunk({"text": piece})
        yield None, self.chunk({"text": ""}, finishReason="STOP")


DIALECTS = (Anthropic(), ChatCompletions(), Responses(), Gemini())


# ---- the server

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply({"object": "list", "data": [], "models": []})

    do_HEAD = do_GET

    def do_POST(self):
        path = self.path.split("?")[0]
        raw = self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}"
        body = json.loads(raw)
        dialect = next((dialect for dialect in DIALECTS if dialect.path.search(path)), None)
        if not dialect:
            if "ount" in path:      # count_tokens, :countTokens
                return self.reply({"input_tokens": 100, "totalTokens": 100})
            return self.reply({"error": {"type": "not_found_error", "message": path}}, 404)
        ask = dialect.read(body)
        blocks = script(ask)
        marks = {int(number) for number in MARK.findall(raw.decode())}
        self.server.record(path, ask, blocks, marks, body.get("model"))
        if isinstance(blocks[0], Failure):
            return self.reply(blocks[0].error, blocks[0].status)
        streamed = body.get("stream") or ":stream" in path
        if not streamed:
            return self.reply(dialect.whole(self.server.requests, body, blocks))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()          # HTTP/1.0: the end of the connection ends the stream
        for name, data in dialect.events(self.server.requests, body, blocks):
            data = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {data}\n\n").encode())

    def reply(self, value, status=200):
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)


class MockModel(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0, log=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests, self.log, self.lock = 0, log, threading.Lock()
        self.asked = None           # the model's name in it
        self.begin = self.begun = None      # called once, at the first request for a prompt -> what it returned
        self.heard = set()          # the marks in the last request that belongs to a turn

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def record(self, path, ask, blocks, marks, name):
        """Logs only keyword, marks and tool names: all else is the vendor's prompt and stays out of logs."""
        with self.lock:
            self.requests += 1
            if ask.tools and not ask.schema:
                self.heard, self.asked = marks, name
                if self.begin and self.begun is None:
                    self.begun = self.begin()
            if self.log:
                answer = [block.whole[:60] if isinstance(block, Text) else vars(block) for block in blocks]
                print(json.dumps({"path": path, "keyword": ask.keyword(), "answered": ask.answered,
                                  "marks": sorted(marks), "tools": sorted(ask.tools), "answer": answer}), file=self.log, flush=True)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):      # normal: a cancelled agent hangs up
            super().handle_error(request, client_address)


if __name__ == "__main__":
    server = MockModel(int(sys.argv[1]) if len(sys.argv) > 1 else 8500, log=sys.stderr if sys.stderr.isatty() else None)
    print(server.url, file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
