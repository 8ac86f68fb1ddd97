#!/usr/bin/env python3
"""The real agents: pinned packages, command lines, and the settings with which each uses the mock model.

    agents.py [NAME...]     installs them (default: all) with npm and pip under ACPIPE_AGENTS_DIR

A failed installation is reported and does not stop the others; the exit status is then 1.
"""
import copy
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("ACPIPE_AGENTS_DIR") or Path.home() / ".cache" / "acpipe-agents")
PLATFORM = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"

QUIET = {   # telemetry, updates and other traffic off; running as root is safe in a sandbox
    "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "GEMINI_TELEMETRY_ENABLED": "false", "GEMINI_CLI_NO_RELAUNCH": "true",
}


class Package:
    """A pinned npm package in a separate folder."""
    root = ROOT

    def __init__(self, name, version):
        self.name, self.version = name, version
        self.folder = self.root / f"{name.split('/')[-1]}@{version}"
        self.modules = self.folder / "node_modules"

    def installed(self):
        """The version found on disk, or None."""
        try:
            return json.loads((self.modules / self.name / "package.json").read_text())["version"]
        except FileNotFoundError:
            return None

    def install(self):
        if self.installed() == self.version:
            return print(f"{self.name} {self.version}: already there")
        self.folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", self.folder, "--ignore-scripts", "--save-exact", "--no-audit",
                        "--no-fund", "--no-update-notifier", f"{self.name}@{self.version}"],
                       cwd=self.folder, stdout=subprocess.DEVNULL, check=True)
        print(f"{self.name} {self.version}: installed in {self.folder}")


class PythonPackage(Package):
    """A pinned PyPI package in a separate virtual environment."""

    def __init__(self, name, version, extra="", sources=(), options=(), instead=None, minors=(12, 13)):
        super().__init__(name, version)
        self.extra = extra
        self.sources = sources          # dependencies without a wheel
        self.options = options          # of pip
        self.instead = instead or {}    # requirements of this package that the registry lacks -> their replacements
        self.minors = minors            # of the versions of Python 3 that it supports

    def installed(self):
        try:
            found = next(self.folder.glob(f"lib/python3*/site-packages/{self.name.replace('-', '_')}-*.dist-info"))
        except StopIteration:
            return None
        return found.name.removesuffix(".dist-info").rsplit("-", 1)[1]

    def install(self):
        if self.installed() == self.version:
            return print(f"{self.name} {self.version}: already there")
        subprocess.run([newer_python(self.minors), "-m", "venv", "--clear", self.folder], check=True)
        wheels = ["--only-binary", ":all:", *(word for name in self.sources for word in ("--no-binary", name))]
        pip = [self.folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *wheels, *self.options]
        wanted = f"{self.name}{self.extra}=={self.version}"
        if self.instead:
            subprocess.run([*pip, "--no-deps", wanted], check=True)
            [metadata] = self.folder.glob(f"lib/python3*/site-packages/{self.name.replace('-', '_')}-*.dist-info/METADATA")
            needs = [line.partition(": ")[2] for line in metadata.read_text().splitlines()
                     if line.startswith("Requires-Dist: ") and "extra ==" not in line]
            subprocess.run([*pip, *(self.instead.get(need, need) for need in needs)], check=True)
        else:
            subprocess.run([*pip, wanted], check=True)
        print(f"{self.name} {self.version}: installed in {self.folder}")


def newer_python(minors=(12, 13)):
    """Returns the path of a Python 3 with one of these minor versions. All agents of PyPI support 3.12, most also 3.13."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob("3.1[23].*/bin/python3"), reverse=True)
    found = [*map(shutil.which, ("python3.13", "python3.12")), *pyenv]
    for python in filter(None, (sys.executable, *found)):
        version = [python, "-c", "import sys; print(*sys.version_info[:2])"]
        words = subprocess.run(version, capture_output=True, text=True).stdout.split()
        if words in [["3", str(minor)] for minor in minors]:
            return python
    raise OSError(f"no Python found of {', '.join(f'3.{minor}' for minor in minors)}")


NODE = Package(f"node-{PLATFORM}", "22.23.5")
NODE_BIN = NODE.modules / NODE.name / "bin"


class Agent:
    needs = ()          # further packages
    env = {}            # variables that name the model: name -> value, {url} and {home} filled in
    files = {}          # configuration under HOME: path -> text, {url} filled in
    asking = ()         # what makes it ask here: names among `env`, patterns of text in `files`; see `as_it_comes`
    memory = ()         # folders under HOME that hold its sessions
    base = {}           # additions to acpipe's own environment, to find the agent
    asks = True         # requests permission before it runs a command
    sandboxes = False   # runs commands without a request inside a sandbox of its own
    outputs = True      # reports the output of commands
    builtin = None      # name of its built-in entry in acpipe, if that is not its name here
    programs = ()       # further programs that must be in PATH if acpipe finds the agent by name
    own = ()            # variables among `env` that take the place of `programs`
    fails = (401, 529)  # statuses of the model that it does not retry for minutes

    def packages(self):
        return (self.package, *self.needs)

    def command(self):
        raise NotImplementedError

    def program(self):
        """Returns the path of the program as its package installs it, which its built-in entry in acpipe names."""
        return self.command()[0]

    def words(self):
        """Returns the end of the command line of `acpipe run`, which names the agent."""
        return ["--", *map(str, self.command())]

    def named(self):
        """Returns the params of agent/connect that name the agent."""
        command, *args = map(str, self.command())
        return {"command": command, "args": args}

    def variables(self, url, home):
        return {name: value.format(url=url, home=home) for name, value in self.env.items()}

    def configure(self, url, home):
        for path, text in self.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("{url}", url))

    def as_it_comes(self):
        """Returns this agent without the settings that make it ask, as its users have it."""
        plain = copy.copy(self)
        plain.env = {name: value for name, value in self.env.items() if name not in self.asking}
        plain.files = {path: functools.reduce(lambda left, pattern: re.sub(pattern, "", left), self.asking, text)
                       for path, text in self.files.items()}
        return plain

    def wire_model(self, chosen):
        """Returns the model's name in a request after this entry was chosen, or None if the agent does not show it."""

    def ripen(self):
        """Waits until a new session can be restored; with most agents that is at once."""

    def forget(self, home):
        """Deletes its sessions and keeps its settings. Returns True if there was a session to delete."""
        found = [path for pattern in self.memory for path in home.glob(pattern)]
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return bool(found)


class Claude(Agent):
    """The CLI in its own protocol; acpipe finds it."""
    package = Package("@anthropic-ai/claude-code", "2.1.332")
    env = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "fake", "CLAUDE_CONFIG_DIR": "{home}/.claude",
           "CLAUDE_CODE_MAX_RETRIES": "1"}     # else an error takes three minutes
    memory = (".claude/projects",)
    base = {"CLAUDE_CLI_PATH": str(package.modules / "@anthropic-ai" / f"claude-code-{PLATFORM}" / "claude")}

    def program(self):
        return Path(self.base["CLAUDE_CLI_PATH"])      # bin/claude is a placeholder until an install script ran

    def words(self):
        return ["--agent", "claude"]

    def named(self):
        return {"protocol": "claude"}


class ClaudeAcp(Agent):
    """Claude Code through the adapter, which includes a CLI."""
    package = Package("@agentclientprotocol/claude-agent-acp", "0.101.0")
    needs = (NODE,)
    env, memory = Claude.env, Claude.memory
    asking = (r'"permissions": \{[^}]*\}',)        # it starts in the mode `auto`
    files = {".claude/settings.json": '{"permissions": {"defaultMode": "default"}}'}

    def program(self):
        return self.package.modules / ".bin" / "claude-agent-acp"

    def command(self):
        return [NODE_BIN / "node", self.package.modules / self.package.name / "dist" / "index.js"]


class Codex(Agent):
    sandboxes = True
    package = Package("@zed-industries/codex-acp", "0.16.0")
    builtin = "codex"
    env = {"OPENAI_API_KEY": "fake", "CODEX_HOME": "{home}/.codex"}
    memory = (".codex/sessions", ".codex/*.sqlite*")
    asking = ("INITIAL_AGENT_MODE", r"approval_policy.*\n", r"sandbox_mode.*\n")
    files = {".codex/config.toml": """\
model = "gpt-5.5"
model_provider = "mock"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false
analytics.enabled = false
feedback.enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = 1
"""}

    def command(self):
        return [self.package.modules / "@zed-industries" / f"codex-acp-{PLATFORM}" / "bin" / "codex-acp"]


class OpenCode(Agent):
    fails = (401,)
    package = Package("opencode-ai", "1.18.33")
    memory = (".local/share/opencode",)
    asking = (r'"permission": \{[^}]*\},\s*',)
    files = {".config/opencode/opencode.json": json.dumps({
        "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled",
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}/v1", "apiKey": "fake"},
            "models": {name: {"tool_call": True, "limit": {"context": 100000, "output": 8000}}
                       for name in ("mock", "mock-2")}}},
    }, indent=2)}

    def wire_model(self, chosen):
        return chosen.split("/")[-1]        # mock/mock-2

    def command(self):
        return [self.package.modules / f"opencode-{PLATFORM}" / "bin" / "opencode", "acp"]


class Gemini(Agent):
    fails = (401,)
    outputs = False
    package = Package("@google/gemini-cli", "0.61.0")
    needs = (NODE,)
    env = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "fake"}
    memory = (".gemini/tmp", ".gemini/history")
    files = {".gemini/settings.json": json.dumps({
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
    }, indent=2)}

    def program(self):
        return self.package.modules / ".bin" / "gemini"

    def command(self):
        script = self.package.modules / self.package.name / "bundle" / "gemini.js"
        return [NODE_BIN / "node", script, "--acp", "--model", "gemini-2.5-flash"]

    def ripen(self):
        """It names the file of a session after the minute. A load in the minute of its creation would empty that file."""
        time.sleep(60 - time.time() % 60)


class CodexAcp(Codex):
    """The adapter of the ACP project, which starts `codex app-server`."""
    builtin = None
    package = Package("@agentclientprotocol/codex-acp", "2.6.0")
    needs = (NODE,)
    env = {**Codex.env, "MODEL_PROVIDER": "mock", "NO_BROWSER": "1", "INITIAL_AGENT_MODE": "read-only"}

    def wire_model(self, chosen):
        return chosen.split("[")[0]         # gpt-5.5[high]

    def program(self):
        return self.package.modules / ".bin" / "codex-acp"

    def command(self):
        return [NODE_BIN / "node", self.package.modules / self.package.name / "dist" / "index.js"]


class Kimi(Agent):
    """Kimi Code, which replaces the Python program below."""
    fails = (401,)
    package = Package("@moonshot-ai/kimi-code", "2.1.0")
    needs = (NODE,)
    env = {"KIMI_CODE_NO_AUTO_UPDATE": "1"}
    memory = (".kimi-code/sessions",)
    files = {".kimi-code/config.toml": """\
default_model = "mock-1"
telemetry = false

[providers.mock]
type = "openai"
base_url = "{url}/v1"
api_key = "fake"

[models.mock-1]
provider = "mock"
model = "mock-1"
max_context_size = 100000

[models.mock-2]
provider = "mock"
model = "mock-2"
max_context_size = 100000
"""}

    def wire_model(self, chosen):
        return chosen.split(",")[0]

    def program(self):
        return self.package.modules / ".bin" / "kimi"

    def command(self):
        return [NODE_BIN / "node", self.package.modules / self.package.name / "dist" / "main.mjs", "acp"]


class KimiCli(Agent):
    """The last version of the Python program that has an agent."""
    builtin = "kimi"
    package = PythonPackage("kimi-cli", "1.51.0", sources=("ripgrepy",))
    env = {"KIMI_CLI_NO_AUTO_UPDATE": "1"}
    memory = (".kimi/sessions",)
    files = {".kimi/credentials/kimi-code.json": json.dumps({"access_token": "fake", "refresh_token": "fake"}),
             ".kimi/config.toml": """\
default_model = "mock-1"
telemetry = false

[providers.mock]
type = "openai_legacy"
base_url = "{url}/v1"
api_key = "fake"

[models.mock-1]
provider = "mock"
model = "mock-1"
max_context_size = 100000

[models.mock-2]
provider = "mock"
model = "mock-2"
max_context_size = 100000
"""}

    def wire_model(self, chosen):
        return chosen

    def command(self):
        return [self.package.folder / "bin" / "kimi", "acp"]


class Vibe(Agent):
    package = PythonPackage("mistral-vibe", "3.0.3", instead={"certifi==2026.10.19": "certifi==2026.10.19.post1"})
    fails = (401,)
    env = {"MOCK_KEY": "fake"}
    memory = (".vibe/logs/session",)
    files = {".vibe/config.toml": """\
active_model = "mock-1"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "mock"
api_base = "{url}/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "mock-1"
provider = "mock"
alias = "mock-1"

[[models]]
name = "mock-2"
provider = "mock"
alias = "mock-2"
"""}

    def wire_model(self, chosen):
        return chosen

    def command(self):
        return [self.package.folder / "bin" / "vibe-acp"]


class Pi(Agent):
    """The adapter is a separate package."""
    asks = False
    package = Package("pi-acp", "0.0.34")
    agent = Package("@earendil-works/pi-coding-agent", "1.6.0")
    needs = (NODE, agent)
    programs, own = (agent.modules / ".bin" / "pi",), ("PI_ACP_PI_COMMAND",)
    env = {"PI_OFFLINE": "1", "PI_ACP_PI_COMMAND": str(agent.modules / ".bin" / "pi")}
    memory = (".pi/agent/sessions",)
    files = {
        ".pi/agent/models.json": json.dumps({"providers": {"mock": {
            "baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "fake",
            "models": [{"id": "mock-1", "reasoning": True}, {"id": "mock-2", "reasoning": True}]}}}, indent=2),
        ".pi/agent/settings.json": json.dumps({
            "defaultProvider": "mock", "defaultModel": "mock-1", "quietStartup": True, "enableInstallTelemetry": False,
            "retry": {"enabled": False}}, indent=2),
    }

    def wire_model(self, chosen):
        return chosen.split("/")[-1]        # mock/mock-2

    def program(self):
        return self.package.modules / ".bin" / "pi-acp"

    def command(self):
        return [NODE_BIN / "node", self.package.modules / "pi-acp" / "dist" / "index.js"]


class Qwen(Agent):
    package = Package("@qwen-code/qwen-code", "0.24.4")
    fails = (401,)
    needs = (NODE,)
    env = {"OPENAI_API_KEY": "fake", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "mock-1"}
    memory = (".qwen/projects", ".qwen/tmp")
    asking = (r'"tools": \{[^}]*\},\s*',)
    files = {".qwen/settings.json": json.dumps({
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "modelProviders": {"openai": [
            {"id": "mock-1", "name": "Mock 1", "baseUrl": "{url}/v1", "envKey": "OPENAI_API_KEY"},
            {"id": "mock-2", "name": "Mock 2", "baseUrl": "{url}/v1", "envKey": "OPENAI_API_KEY"}]},
        "model": {"name": "mock-1"}, "tools": {"approvalMode": "default"},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
    }, indent=2)}

    def wire_model(self, chosen):
        return chosen.split("(")[0]         # mock-2(openai)

    def program(self):
        return self.package.modules / ".bin" / "qwen"

    def command(self):
        return [NODE_BIN / "node", self.package.modules / self.package.name / "cli.js", "--acp"]


class Copilot(Agent):
    """Needs no login when a provider is configured."""
    package = Package("@github/copilot", "1.0.102")
    env = {"COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_API_KEY": "fake", "COPILOT_MODEL": "mock-1",
           "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    memory = (".copilot/session-state", ".copilot/*.db*")

    def command(self):
        return [self.package.modules / "@github" / f"copilot-{PLATFORM}" / "copilot", "--acp", "--no-auto-update"]


class Cline(Agent):
    package = Package("cline", "3.0.65")
    fails = (401,)
    env = {"CLINE_API_KEY": "fake", "CLINE_PROVIDER": "openai-compatible", "CLINE_MODEL": "mock-1",
           "CLINE_TELEMETRY_DISABLED": "1"}
    memory = (".cline/data/sessions", ".cline/data/db")
    files = {".cline/data/settings/providers.json": json.dumps({
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
        "providers": {"openai-compatible": {
            "settings": {"provider": "openai-compatible", "apiKey": "fake", "model": "mock-1", "baseUrl": "{url}/v1"},
            "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}, indent=2)}

    def command(self):
        binary = self.package.modules / "@cline" / f"cli-{PLATFORM}" / "bin" / "cline"
        return [binary, "--acp", "--auto-approve", "false"]


class Kilo(OpenCode):
    """A descendant of OpenCode. The package of its binary is pinned, as `@kilocode/cli` only names it."""
    package = Package(f"@kilocode/cli-{PLATFORM}", "7.7.9")
    env = {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1", "KILO_DISABLE_SHARE": "1",
           "KILO_TELEMETRY_LEVEL": "off"}
    memory = (".local/share/kilo",)
    files = {".config/kilo/kilo.json": next(iter(OpenCode.files.values()))}

    def command(self):
        return [self.package.modules / self.package.name / "bin" / "kilo", "acp"]


class FastAgent(Agent):
    asks = False
    builtin = "fast-agent"
    package = PythonPackage("fast-agent-mcp", "0.10.48")
    env = {"FAST_AGENT_MODEL": "generic.mock-1", "GENERIC_API_KEY": "fake", "GENERIC_BASE_URL": "{url}/v1"}
    memory = (".fast-agent/sessions",)

    def command(self):
        return [self.package.folder / "bin" / "fast-agent-acp", "-x"]


class Hermes(Agent):
    asks = False
    package = PythonPackage("hermes-agent", "0.19.0", extra="[acp]")
    memory = (".hermes/sessions", ".hermes/*.db*")
    files = {".hermes/config.yaml": """\
model:
  default: mock-1
  provider: custom
  base_url: {url}/v1
  api_key: fake
"""}

    def command(self):
        return [self.package.folder / "bin" / "hermes-acp"]


class OpenHands(Agent):
    fails = (401,)
    package = PythonPackage("openhands", "1.16.0", sources=("func-timeout",), minors=(12,))
    env = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    memory = (".openhands/conversations",)
    files = {".openhands/agent_settings.json": json.dumps({
        "kind": "Agent", "tools": [{"name": "terminal"}, {"name": "file_editor"}],
        "llm": {"model": "openai/mock-1", "api_key": "fake", "base_url": "{url}/v1", "usage_id": "agent"}}, indent=2)}

    def command(self):
        return [self.package.folder / "bin" / "openhands", "acp"]


AGENTS = {"claude": Claude(), "claude-acp": ClaudeAcp(), "codex": CodexAcp(), "codex-zed": Codex(),
          "opencode": OpenCode(), "gemini": Gemini(), "kimi": Kimi(), "vibe": Vibe(), "pi": Pi(), "qwen": Qwen(),
          "copilot": Copilot(), "cline": Cline()}
# Only in the table of forbidden tools; `run.py --only` runs them in any table.
FURTHER = {"kimi-cli": KimiCli(), "kilo": Kilo(), "fast-agent": FastAgent(), "hermes": Hermes(), "openhands": OpenHands()}
AGENTS |= FURTHER


def missing(names, known=AGENTS):
    return [name for name in names if any(p.installed() != p.version for p in known[name].packages())]


def install(names, known=AGENTS):
    """Installs the packages of these agents. Returns the names of those that failed; the others are installed."""
    failed = []
    for package in dict.fromkeys(p for name in names for p in known[name].packages()):
        try:
            package.install()
        except (OSError, subprocess.CalledProcessError) as wrong:
            failed.append(package.name)
            print(f"{package.name} {package.version}: NOT INSTALLED: {wrong}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(AGENTS)
    if unknown:
        sys.exit(f"{__doc__.strip()}\n\nNAME is one of {', '.join(AGENTS)}, not {', '.join(sorted(unknown))}")
    sys.exit(1 if install(sys.argv[1:] or AGENTS) else 0)
