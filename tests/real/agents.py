#!/usr/bin/env python3
"""The real agents: pinned packages, command lines, and what each needs to talk to the mock model.

    agents.py [NAME...]     installs them (default: all) with npm under ACPIPE_AGENTS_DIR
"""
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("ACPIPE_AGENTS_DIR") or Path.home() / ".cache" / "acpipe-agents")
PLATFORM = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"

QUIET = {   # telemetry, updates and other traffic off; root is no danger in a sandbox
    "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "GEMINI_TELEMETRY_ENABLED": "false", "GEMINI_CLI_NO_RELAUNCH": "true",
}


class Package:
    """One pinned npm package in a folder of its own."""

    def __init__(self, name, version):
        self.name, self.version = name, version
        self.folder = ROOT / f"{name.split('/')[-1]}@{version}"
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


NODE = Package(f"node-{PLATFORM}", "22.23.3")
NODE_BIN = NODE.modules / NODE.name / "bin"


class Agent:
    needs = ()          # further packages
    env = {}            # how it finds the model: name -> value, {url} and {home} filled in
    files = {}          # configuration under HOME: path -> text, {url} filled in
    memory = ()         # where under HOME it keeps its sessions
    base = {}           # of acpipe's own environment: how it finds the agent

    def packages(self):
        return (self.package, *self.needs)

    def command(self):
        raise NotImplementedError

    def words(self):
        """The end of the command line of `acpipe run`, which names it."""
        return ["--", *map(str, self.command())]

    def named(self):
        """The params of agent/connect that name it."""
        command, *args = map(str, self.command())
        return {"command": command, "args": args}

    def variables(self, url, home):
        return {name: value.format(url=url, home=home) for name, value in self.env.items()}

    def configure(self, url, home):
        for path, text in self.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("{url}", url))

    def ripen(self):
        """Waits until a session that was just made can be brought back: at once, with most."""

    def forget(self, home):
        """Its sessions go, its settings stay. True when there was something to forget."""
        found = [path for pattern in self.memory for path in home.glob(pattern)]
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return bool(found)


class Claude(Agent):
    """The CLI itself, in its own protocol; acpipe looks for it."""
    package = Package("@anthropic-ai/claude-code", "2.1.330")
    env = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "fake", "CLAUDE_CONFIG_DIR": "{home}/.claude",
           "CLAUDE_CODE_MAX_RETRIES": "1"}     # else an error takes three minutes
    memory = (".claude/projects",)
    base = {"CLAUDE_CLI_PATH": str(package.modules / "@anthropic-ai" / f"claude-code-{PLATFORM}" / "claude")}

    def words(self):
        return ["--agent", "claude"]

    def named(self):
        return {"protocol": "claude"}


class ClaudeAcp(Agent):
    """The same by the adapter, which brings a CLI of its own."""
    package = Package("@agentclientprotocol/claude-agent-acp", "0.100.0")
    needs = (NODE,)
    env, memory = Claude.env, Claude.memory

    def command(self):
        return [NODE_BIN / "node", self.package.modules / self.package.name / "dist" / "index.js"]


class Codex(Agent):
    package = Package("@zed-industries/codex-acp", "0.16.0")
    env = {"OPENAI_API_KEY": "fake", "CODEX_HOME": "{home}/.codex"}
    memory = (".codex/sessions", ".codex/*.sqlite*")
    files = {".codex/config.toml": """\
model = "gpt-5.5"
model_provider = "mock"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
analytics.enabled = false
feedback.enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""}

    def command(self):
        return [self.package.modules / "@zed-industries" / f"codex-acp-{PLATFORM}" / "bin" / "codex-acp"]


class OpenCode(Agent):
    package = Package("opencode-ai", "1.18.33")
    memory = (".local/share/opencode",)
    files = {".config/opencode/opencode.json": json.dumps({
        "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled",
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}/v1", "apiKey": "fake"},
            "models": {"mock": {"tool_call": True, "limit": {"context": 100000, "output": 8000}}}}},
    }, indent=2)}

    def command(self):
        return [self.package.modules / f"opencode-{PLATFORM}" / "bin" / "opencode", "acp"]


class Gemini(Agent):
    package = Package("@google/gemini-cli", "0.61.0")
    needs = (NODE,)
    env = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "fake"}
    memory = (".gemini/tmp", ".gemini/history")
    files = {".gemini/settings.json": json.dumps({
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
    }, indent=2)}

    def command(self):
        script = self.package.modules / self.package.name / "bundle" / "gemini.js"
        return [NODE_BIN / "node", script, "--acp", "--model", "gemini-2.5-flash"]

    def ripen(self):
        """It files a session under the minute: loaded in the minute it was made in, its file is begun anew first."""
        time.sleep(60 - time.time() % 60)


AGENTS = {"claude": Claude(), "claude-acp": ClaudeAcp(), "codex": Codex(), "opencode": OpenCode(), "gemini": Gemini()}


def missing(names):
    return [name for name in names if any(p.installed() != p.version for p in AGENTS[name].packages())]


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(AGENTS)
    if unknown:
        sys.exit(f"{__doc__.strip()}\n\nNAME is one of {', '.join(AGENTS)}, not {', '.join(sorted(unknown))}")
    for package in dict.fromkeys(p for name in sys.argv[1:] or AGENTS for p in AGENTS[name].packages()):
        package.install()
