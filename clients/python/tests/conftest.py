"""Fixtures: a directory and agents of its own for each test, and tests that are coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import Lab

LIMIT_SECONDS = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        await asyncio.wait_for(pyfuncitem.obj(**arguments), LIMIT_SECONDS)

    asyncio.run(run())
    return True


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Agents that follow scripts, and an acpipe with a state directory of its own."""
    made = Lab(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    yield made
