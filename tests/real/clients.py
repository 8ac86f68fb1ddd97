#!/usr/bin/env python3
"""Real clients of ACP: pinned packages, and the programs that use them.

    clients.py [NAME...]    installs them (default: all) with npm, pip and cargo under ACPIPE_CLIENTS_DIR

A failed installation is reported and does not stop the others; the exit status is then 1.
"""
import os
import subprocess
import sys
from pathlib import Path

import agents
from acpx_client import AcpxClient
from sdk_clients import SdkClient
from toad_client import ToadClient

ROOT = Path(os.environ.get("ACPIPE_CLIENTS_DIR") or Path.home() / ".cache" / "acpipe-clients")
PROGRAMS = Path(__file__).resolve().parent / "clients"


class Package(agents.Package):
    root = ROOT


class PythonPackage(agents.PythonPackage):
    root = ROOT


class Crate(Package):
    """The client in `clients/rust`, built with the crate that its Cargo.lock pins."""

    def program(self):
        return self.folder / "debug" / "acpipe-real-client"

    def installed(self):
        return self.version if self.program().exists() else None

    def install(self):
        subprocess.run(["cargo", "build", "--quiet", "--locked", "--manifest-path", PROGRAMS / "rust" / "Cargo.toml",
                        "--target-dir", self.folder], check=True)
        print(f"{self.name} {self.version}: built in {self.folder}")


class Client:
    needs = ()          # further packages
    drive = SdkClient   # how the cases use it
    lacks = {}          # case -> reason why it does not apply

    def packages(self):
        return (self.package, *self.needs)


class TypeScript(Client):
    package = Package("@agentclientprotocol/sdk", "2.4.0")
    needs = (agents.NODE,)

    def program(self):
        module = self.package.modules / self.package.name / "dist" / "v1" / "stable" / "acp.js"
        return [agents.NODE_BIN / "node", PROGRAMS / "typescript.mjs", module]


class Python(Client):
    package = PythonPackage("agent-client-protocol", "0.12.1")

    def program(self):
        return [self.package.folder / "bin" / "python", "-B", PROGRAMS / "python.py"]


class Rust(Client):
    package = Crate("rust-sdk", "5.0.0")

    def program(self):
        return [self.package.program()]


class Acpx(Client):
    package = Package("acpx", "0.19.1")
    needs = (agents.NODE,)
    drive = AcpxClient

    def program(self):
        return [agents.NODE_BIN / "node", self.package.modules / "acpx" / "dist" / "cli.js"]


class Toad(Client):
    """A terminal client. It needs Python 3.14; `clients/start_toad.py` starts it on an older one."""
    package = PythonPackage("batrachian-toad", "0.6.20", sources=("bashlex",), options=("--ignore-requires-python",))
    drive = ToadClient
    lacks = {"two sessions": "Toad starts an agent process for each session"}

    def program(self):
        return [self.package.folder / "bin" / "python", "-B", PROGRAMS / "start_toad.py"]


CLIENTS = {"acpx": Acpx(), "typescript": TypeScript(), "python": Python(), "rust": Rust(), "toad": Toad()}


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(CLIENTS)
    if unknown:
        sys.exit(f"{__doc__.strip()}\n\nNAME is one of {', '.join(CLIENTS)}, not {', '.join(sorted(unknown))}")
    sys.exit(1 if agents.install(sys.argv[1:] or CLIENTS, CLIENTS) else 0)
