# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/certificates.md: its commands make a cluster that works, and its tables say what is so."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import inspect
import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from google.protobuf.descriptor import MethodDescriptor

from controller_fixtures import run, running_controller
from fake_data_plane import FakeDataPlane
from switchfold.controller.__main__ import switchfold
from switchfold.controller.api.access import allowed_roles, required_role
from switchfold.controller.api.operator_client import OperatorClient
from switchfold.controller.cli.controller import run as controller_run
from switchfold.controller.cli.doctor_command import doctor
from switchfold.controller.config import ControllerConfig, SwitchConfig, load_config
from switchfold.controller.errors import ConfigError, SwitchError
from switchfold.controller.listening import SERVICES
from switchfold.controller.server import ControllerServer
from switchfold.controller.switches import switch_call
from switchfold.controller.switches.switch_call import fetch_pipeline
from switchfold.hostlib.credentials import Credentials, Role, credentials_in, role_name
from switchfold.hostlib.credentials.choice import VARIABLE
from switchfold.hostlib.factors import ExchangeOptions
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.parameter_server import ClientOptions, ParameterServer
from switchfold.hostlib.parameter_server.command import run as parameter_server
from switchfold.softswitch import serve
from switchfold.softswitch.commands.run import run as softswitch_run
from switchfold.softswitch.p4runtime.service.server import P4RuntimeServer
from switchfold.softswitch.program.bmv2_json import read_program

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "certificates.md").read_text("utf-8")
FOLDER = "/etc/switchfold"
DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\dZ")
METHODS: list[MethodDescriptor] = [m for service in SERVICES for m in service.methods]
ISSUED = {"c1", "s1", "p1", "w1", "w2", "alice"}


def commands() -> list[tuple[str, list[str]]]:
    """Return the page's `switchfold certs` commands in order, each with the lines it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ switchfold "), []))
            else:
                found[-1][1].append(line)
    return found


def run_commands(count: int | None = None) -> None:
    """Run the first `count` commands in the present folder; compare what they print."""
    for command, lines in commands()[:count]:
        done = CliRunner().invoke(switchfold, shlex.split(command))
        assert done.exception is None, (command, done.output, done.exception)
        printed = [DATE.sub("DATE", line.rstrip()) for line in done.output.splitlines()]
        assert printed == [DATE.sub("DATE", line) for line in lines], command


def read_table(marker: str) -> list[list[str]]:
    """Return the cells of the table behind a comment of the page, without its head."""
    table = PAGE.partition(f"<!-- {marker}:")[2].partition("\n\n")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def settings(heading: str, folder: Path) -> tuple[Path | None, tuple[SwitchConfig, ...]]:
    """Read the first TOML of a section, with `folder` in place of the machine's."""
    section = PAGE.partition(f"\n## {heading}\n")[2]
    text = section.partition("```toml\n")[2].partition("```")[0]
    file = folder / "controller.toml"
    file.write_text(text.replace(FOLDER, str(folder)))
    config = load_config(file)
    return config.credentials, config.switches


def test_commands_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_commands()
    verbs = {command.split()[1] for command, _ in commands()}
    assert verbs == {"init", "issue", "list", "renew", "revoke"}
    authority = tmp_path / "authority"
    assert {path.name for path in (authority / "issued").iterdir()} == ISSUED
    files = [name for (name, *_) in read_table_of_files()]
    for name in ISSUED:
        folder = authority / "issued" / name
        assert sorted(f"`{path.name}`" for path in folder.iterdir()) == sorted(files)
        credentials = credentials_in(folder)
        assert credentials is not None
        assert ("revoked" in credentials.own_problem()) is (name == "w2")


def read_table_of_files() -> list[list[str]]:
    table = PAGE.partition("| file of a folder |")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def test_a_controller_and_a_switch_run_with_these_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", 60.0)
    monkeypatch.chdir(tmp_path)
    first_list = next(i for i, (command, _) in enumerate(commands()) if "list" in command)
    run_commands(first_list)
    issued = tmp_path / "authority" / "issued"
    ours, (switch,) = settings("From nothing to a secured cluster", issued)
    assert switch.credentials == ours == issued / "c1"

    async def scenario() -> None:
        async with running_controller(tmp_path, credentials=ours) as (server, _):
            alice = OperatorClient(server.address, credentials=issued / "alice")
            assert await asyncio.to_thread(alice.list_jobs) == []
            nobody = OperatorClient(server.address, insecure=True)
            with pytest.raises(ConfigError, match="it wants TLS and a certificate"):
                await asyncio.to_thread(nobody.list_jobs)

    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    run(scenario())
    with P4RuntimeServer(
        FakeDataPlane(),
        address="127.0.0.1:0",
        device_id=1,
        compile_program=read_program,
        credentials=Credentials(issued / "s1"),
        port_statistics=dict,
    ) as served:
        there = dataclasses.replace(switch, address=f"127.0.0.1:{served.port}")
        assert asyncio.run(fetch_pipeline(there)) is None
        other = dataclasses.replace(there, name="s2")
        with pytest.raises(SwitchError, match=r"no valid s2.*Hostname mismatch"):
            asyncio.run(fetch_pipeline(other))


@pytest.mark.usefixtures("no_choice")
def test_a_controller_without_certificates_must_be_told_so() -> None:
    config = load_config(None, switches=(SwitchConfig(name="s1", address="127.0.0.1:1"),))
    with pytest.raises(ConfigError, match="or choose --insecure"):
        ControllerServer(config)


def test_switches_may_have_another_authority(tmp_path: Path) -> None:
    ours, (switch,) = settings("BMv2", tmp_path)
    assert (ours, switch.credentials) == (tmp_path / "c1", tmp_path / "switches-c1")


def test_roles_are_as_told() -> None:
    rows = {row[0].strip("`"): row for row in read_table("roles")}
    assert rows.keys() == {str(role) for role in Role}
    at_switches = {role for role, row in rows.items() if "P4Runtime" in row[3]}
    assert at_switches == {"controller", "operator"}, "see test_p4runtime_tls.py"
    at_controllers = {role for role, row in rows.items() if "the controller" in row[3]}
    opened = {str(role) for method in METHODS for role in allowed_roles(required_role(method))}
    assert at_controllers == opened
    for role, row in rows.items():
        if row[2]:
            name = role_name(Role(role), "NAME" if role == "switch" else "")
            assert row[2].startswith(f"`{name}`")


def test_each_process_has_the_choice_that_the_page_names() -> None:
    rows = {row[0]: row[1] for row in read_table("choices")}
    flags = {
        "controller": {option for one in controller_run.params for option in one.opts},
        "softswitch": {option for one in softswitch_run.params for option in one.opts},
        "parameter server": set(parameter_server_help().split()),
        "operators' commands": {option for one in doctor.params for option in one.opts},
    }
    assert [name for name, row in rows.items() if "`--insecure`" in row] == list(flags)
    assert all("--insecure" in options for options in flags.values())
    arguments = {
        "`serve(insecure=True)`": serve,
        "`ParameterServer(insecure=True)`": ParameterServer,
        "`HybridParallel(insecure=True)`": None,  # needs PyTorch
    }
    fields = {
        "`ClientOptions.insecure`": ClientOptions,
        "`ExchangeOptions.insecure`": ExchangeOptions,
        "`SessionOptions.insecure`": SessionOptions,
    }
    cells = " ".join(rows.values())
    for text, taken in (arguments | fields).items():
        assert text in cells
        assert taken is None or "insecure" in inspect.signature(taken).parameters
    assert f"`{VARIABLE}=1`" in cells
    assert "`insecure = true`" in cells
    assert "insecure" in inspect.signature(ControllerConfig).parameters


def parameter_server_help() -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        parameter_server(["--help"])
    return out.getvalue()


def string_constants() -> str:
    """Return all strings of the code that judges certificates, one a line."""
    folders = ("hostlib/credentials", "hostlib/peers", "controller", "controller/api")
    texts: list[str] = []
    for path in (path for folder in folders for path in (ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


OPENSSL = (
    "certificate has expired",
    "certificate revoked",
    "unable to get local issuer certificate",
    "Hostname mismatch",
    "controller.switchfold",
    "s1.switch.switchfold",
)
"""What comes from OpenSSL or from names."""


@pytest.mark.parametrize("row", read_table("errors"), ids=lambda row: row[0])
def test_errors_are_those_of_the_code(row: list[str]) -> None:
    text = row[0].strip("`")
    for part in OPENSSL:
        text = text.replace(part, "...")
    code = string_constants()
    fragments = [part.strip(" :") for part in text.split("...")]
    assert [part for part in fragments if part and part not in code] == []
