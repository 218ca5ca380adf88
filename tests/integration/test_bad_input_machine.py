# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands on a machine without a compiler, root, free ports or interfaces."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller_fixtures import fake_switch, make_config, run, serving
from switchfold import p4src
from switchfold.controller.errors import ListenError
from switchfold.controller.server import ControllerServer
from switchfold.softswitch import Switch
from switchfold.softswitch.p4runtime.service.serve import serve

NARROW = Path(p4src.__file__).parent / "build" / "switchfold_narrow" / "switchfold_narrow"
PROGRAM = (f"{NARROW}.json", "--p4info", f"{NARROW}.p4info.txtpb")
DEADLINE_S = 120.0
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")


def python(*words: str, **environment: str) -> tuple[int, str]:
    """Run Python; return its exit code and its output."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def without_compiler(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}


# A module that is None in sys.modules is not found, whether it is installed or not.
NO_ZIG = "import sys; sys.modules['ziglang'] = None; "


@pytest.mark.parametrize("program", [(), PROGRAM], ids=["empty", "narrow"])
def test_no_compiler_for_the_switch(tmp_path: Path, program: tuple[str, ...]) -> None:
    code = NO_ZIG + "from switchfold.softswitch.commands.command import main; main()"
    options = ("--grpc", f"unix:{tmp_path}/s.sock")
    status, text = python("-c", code, "run", *program, *options, **without_compiler(tmp_path))
    assert status == 1
    last = text.splitlines()[-1]
    assert last.startswith("Error: no C compiler: looked for cc, gcc and clang on the PATH")
    assert "apt install gcc" in last
    assert "pip install ziglang" in last


@pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is not None, reason="ziglang brings a compiler"
)
def test_no_compiler_for_a_testbed(tmp_path: Path) -> None:
    options = ("--mode", "udp", "--name", f"bare{os.getpid()}")
    status, text = python(
        "-m", "switchfold.controller", "testbed", "up", *options, **without_compiler(tmp_path)
    )
    assert status == 1
    assert text.startswith("Error: s1 ended with status 1 before it was ready")
    assert "no C compiler" in text


def test_no_compiler_seen_by_doctor(tmp_path: Path) -> None:
    code = NO_ZIG + "from switchfold.controller.__main__ import main; main()"
    status, text = python("-c", code, "doctor", "--local", "--json", **without_compiler(tmp_path))
    report = json.loads(text)
    assert (status, report["status"]) == (1, "fail")
    (check,) = (check for check in report["checks"] if check["name"] == "compiler")
    assert check["status"] == "fail"
    assert "apt install gcc" in check["remedy"]


# Privileges go after the imports: the interpreter may lie in root's home.
AS_NOBODY = """
import os, sys, time
{imports}
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
def refuse(_):
    raise AssertionError("it waits, to try again")
time.sleep = refuse
try:
    {call}
except Exception as error:
    print(type(error).__name__, error, sep=": ")
"""


@pytest.mark.parametrize(
    ("imports", "call", "error", "remedy"),
    [
        pytest.param(
            "from switchfold.hostlib.transports.raw import RawTransport",
            "RawTransport('lo')",
            "TransportPermissionError",
            "CAP_NET_RAW",
            id="raw transport",
        ),
        pytest.param(
            "from switchfold.softswitch import Switch; switch = Switch()",
            "switch.ports.add(1, 'veth:lo')",
            "PortPermissionError",
            "run as root (packet sockets need CAP_NET_RAW), or use udp ports",
            id="veth port",
        ),
        pytest.param(
            "from switchfold.bmv2_topos import Testbed, single_switch",
            "Testbed(single_switch(2)).up()",
            "PrivilegeError",
            "--mode udp",
            id="testbed",
        ),
    ],
)
def test_no_root_where_it_is_needed(imports: str, call: str, error: str, remedy: str) -> None:
    status, text = python("-c", AS_NOBODY.format(imports=imports, call=call))
    assert status == 0
    assert text.startswith(f"{error}: ")
    assert remedy in text


@contextmanager
def taken_address(kind: str, folder: Path) -> Generator[str]:
    """Yield an address that another socket holds."""
    if kind == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind(("127.0.0.1", 0))
            yield f"127.0.0.1:{holder.getsockname()[1]}"
    else:
        address = "127.0.0.1:0" if kind == "tcp" else f"unix:{folder}/s.sock"
        with Switch() as switch, serve(switch, address=address) as server:
            yield server.address
            # The other socket is unharmed, and still receives what is sent there.
            assert server.address.startswith(address.removesuffix("0"))
            with pytest.raises(Exception, match="cannot bind"):
                serve(switch, address=server.address)


@pytest.mark.parametrize(
    ("kind", "options", "texts"),
    [
        ("udp", ("--port", "1=udp:{}"), ("port 1", "another socket holds it")),
        ("tcp", ("--grpc", "{}"), ("P4Runtime server: cannot bind {}", "taken")),
        ("unix", ("--grpc", "{}"), ("P4Runtime server: cannot bind {}", "taken")),
    ],
)
def test_address_of_a_switch_that_is_taken(
    tmp_path: Path, kind: str, options: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    with taken_address(kind, tmp_path) as address:
        words = [word.format(address) for word in options]
        if kind == "udp":
            words += ["--grpc", f"unix:{tmp_path}/other.sock"]
        status, text = python("-m", "switchfold.softswitch", "run", *words)
    assert status == 1
    last = text.splitlines()[-1]
    assert all(part.format(address) in last for part in texts), text


@pytest.mark.root
@needs_root
def test_interface_of_a_switch_that_is_missing(tmp_path: Path) -> None:
    options = ("--port", "1=veth:nope", "--grpc", f"unix:{tmp_path}/s.sock")
    status, text = python("-m", "switchfold.softswitch", "run", *options)
    assert status == 1
    assert "port 1 (veth:nope): there is no interface 'nope'" in text.splitlines()[-1]


def test_interface_that_is_missing_seen_by_doctor() -> None:
    options = ("--local", "--json", "--interface", "nope")
    status, text = python("-m", "switchfold.controller", "doctor", *options)
    checks = {check["name"]: check["status"] for check in json.loads(text)["checks"]}
    assert (status, checks["interface nope"]) == (1, "fail")


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_address_of_a_controller_that_is_taken(tmp_path: Path, kind: str) -> None:
    listen = "127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/c.sock"

    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake, listen=listen)) as it:
            second = tmp_path / "second"
            second.mkdir()
            config = make_config(second, fake, listen=it.address, election_id=5)
            with pytest.raises(ListenError, match="cannot listen"):
                async with ControllerServer(config).serve():
                    pass

    run(scenario())
