"""Starts Toad. It is written for Python 3.14, where annotations are evaluated late; on an older Python a module that
refers to a later name in one is compiled with `from __future__ import annotations`, and threads take the place of
interpreters.

    start_toad.py [ARGS...]     with the Python of Toad's virtual environment
"""
import __future__
import concurrent.futures
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from typing import Any


class Late(SourceFileLoader):
    def exec_module(self, module):
        try:
            super().exec_module(module)
        except NameError:
            flags = __future__.annotations.compiler_flag
            exec(compile(self.get_data(self.path), self.path, "exec", flags, dont_inherit=True), module.__dict__)


class Finder:
    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] == "toad" else None
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Late(spec.loader.name, spec.loader.path)
        return spec


if sys.version_info < (3, 14):
    sys.meta_path.insert(0, Finder())
    concurrent.futures.InterpreterPoolExecutor = concurrent.futures.ThreadPoolExecutor      # for its search of paths
    import toad.jsonrpc
    from toad.acp import protocol

    # It evaluates annotations of other modules that are text.
    toad.jsonrpc.protocol, toad.jsonrpc.Any = protocol, Any

from toad.cli import main

main()
