# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller as a process: ready signal, SIGTERM, SIGKILL while a job runs, typed errors."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from grpc import StatusCode

from controller_fixtures import HOSTS, TEST_TIMEOUT_S, fake_switch, join_all, resume_all, run
from fake_program import write_program
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.hostlib.control.session_api import session_pb2 as pb


def write_config(
    folder: Path, switch_address: str, port: int, *, connect_timeout_s: float = 60.0
) -> Path:
    write_program(folder)
    lines = [
        f'listen = "127.0.0.1:{port}"',
        f'database = "{folder / "controller.sqlite3"}"',
        f'program_dir = "{folder}"',
        "lease_s = 60.0",
        "resume_grace_s = 60.0",
        f"connect_timeout_s = {connect_timeout_s}",
        "[[switch]]",
        'name = "s1"',
        f'address = "{switch_address}"',
    ]
    for host in HOSTS:
        lines += ["[[switch.host]]", f'name = "{host.name}"', f"port = {host.port}"]
        lines += [f'address = "{host.address}"', f'mac = "{host.mac}"']
    path = folder / "controller.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


async def start(config: Path) -> asyncio.subprocess.Process:
    """Start a controller and wait until it says that it is ready."""
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "switchfold.controller", "controller", "run",
        "--config", str(config), "--insecure", "--ready-fd", str(writer),
        pass_fds=(writer,), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    with open(reader, "rb") as ready:
        line = await asyncio.to_thread(ready.readline)
    assert line in (b"ready\n", b"")
    return process


async def finish(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Return the exit code and stderr."""
    async with asyncio.timeout(TEST_TIMEOUT_S):
        _, err = await process.communicate()
    return process.returncode, err.decode()


def test_process_killed_while_a_job_runs(tmp_path: Path):
    async def scenario() -> None:
        port = free_port()
        async with fake_switch() as fake:
            config = write_config(tmp_path, fake.address, port)
            address = f"127.0.0.1:{port}"
            process = await start(config)
            workers = await join_all(address, 3)
            join_replies = [await worker.join_reply() for worker in workers]
            entries, pushes = dict(fake.entities), fake.num_pushes
            process.send_signal(signal.SIGKILL)
            await finish(process)
            for worker in workers:
                assert (await worker.refusal())[0] is StatusCode.UNAVAILABLE
                await worker.close()
            assert fake.entities == entries

            process = await start(config)
            assert (fake.entities, fake.num_pushes) == (entries, pushes)
            workers = await resume_all(address, join_replies)
            for worker, before in zip(workers, join_replies, strict=True):
                assert (await worker.join_reply()).view == before.view
                await worker.send(leave=pb.Leave())
                await worker.is_at_end()
                await worker.close()
            process.terminate()
            code, err = await finish(process)
            assert code == 0, err
            assert "Traceback" not in err
            assert sum(fake.tables().values()) == len(HOSTS)

    run(scenario())


def test_process_terminated_while_it_connects(tmp_path: Path):
    async def scenario() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            config = write_config(tmp_path, address, free_port())
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "switchfold.controller", "controller", "run",
                "--config", str(config), "--insecure",
                stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stderr is not None
            while b"option election_id" not in (line := await process.stderr.readline()):
                assert line, "it has ended"
            process.terminate()
            code, err = await finish(process)
            assert code == 0, err

    run(scenario())


def test_process_without_a_switch(tmp_path: Path):
    async def scenario() -> None:
        away = f"127.0.0.1:{free_port()}"
        config = write_config(tmp_path, away, free_port(), connect_timeout_s=2.0)
        process = await start(config)
        code, err = await finish(process)
        assert code == 1
        assert "error: switch s1 at" in err
        assert "Traceback" not in err

    run(scenario())


def test_process_with_a_listen_address_that_is_taken(tmp_path: Path):
    async def scenario() -> None:
        async with fake_switch() as fake:
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                config = write_config(tmp_path, fake.address, taken.getsockname()[1])
                process = await start(config)
                code, err = await finish(process)
        assert code == 1
        assert err.splitlines()[-1].startswith("error: cannot listen at 127.0.0.1:")
        assert "Traceback" not in err

    run(scenario())


def test_process_with_a_file_or_credentials_that_no_start_mends(tmp_path: Path):
    """Exit code 2, for which service managers do not start it again."""

    async def scenario() -> None:
        config = write_config(tmp_path, f"127.0.0.1:{free_port()}", free_port())
        text = config.read_text("utf-8")
        absent = tmp_path / "absent"
        cases = {
            "straggler": f"straggler = 7\n{text}",
            "is not TOML": f"= {text}",
            str(absent): f'credentials = "{absent}"\n{text}',
        }
        for reason, written in cases.items():
            config.write_text(written, "utf-8")
            code, err = await finish(await start(config))
            assert code == 2, err
            assert err.splitlines()[-1].startswith("error: ")
            assert reason in err.splitlines()[-1]
            assert "Traceback" not in err

    run(scenario())
