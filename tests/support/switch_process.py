# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Real switches as processes: BMv2 or softswitch, by their P4Runtime address."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import IO

import pytest

from bmv2_options import thrift_options
from switchfold.bmv2_topos.processes.daemons import NUM_PRIORITIES
from switchfold.controller.api.endpoint import connect

DEADLINE_S = 120.0


def bmv2_command(address: str) -> list[str]:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on the PATH")
    thrift = thrift_options()
    return [
        "simple_switch_grpc", "--no-p4", "--device-id", "1", *thrift, "--",
        "--grpc-server-addr", address, "--cpu-port", "255",
        "--priority-queues", str(NUM_PRIORITIES),
    ]  # fmt: skip


def softswitch_command(address: str, ports: tuple[str, ...] = (), device_id: int = 1) -> list[str]:
    if importlib.util.find_spec("switchfold.softswitch.__main__") is None:
        pytest.skip("softswitch has no command here")
    options = [option for port in ports for option in ("--port", port)]
    return [
        sys.executable, "-m", "switchfold.softswitch", "run",
        "--grpc", address, "--device-id", str(device_id),
        "--priority-queues", str(NUM_PRIORITIES), *options,
    ]  # fmt: skip


@asynccontextmanager
async def target(command: list[str], address: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a switch until the context is left; entered when its P4Runtime port answers."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        try:
            await _await_answer(process, address, log)
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _await_answer(process: asyncio.subprocess.Process, address: str, log: IO[bytes]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DEADLINE_S
    while process.returncode is None and loop.time() < deadline:
        try:
            await asyncio.to_thread(connect, address, 1.0)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            return
    log.seek(0)
    text = log.read().decode(errors="replace")
    raise AssertionError(f"no answer at {address}, exit {process.returncode}, it said: {text}")


def switch_command(name: str, address: str) -> list[str]:
    """Return the command line of a target by its name; skips where it is not installed."""
    return {"bmv2": bmv2_command, "softswitch": softswitch_command}[name](address)
