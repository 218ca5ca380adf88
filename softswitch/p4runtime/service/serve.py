# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a P4Runtime server for a `softswitch.Switch`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from ...compilation.compiler import CompiledProgram, compile_program
from ...program.model import Program
from ...switch.switch import Switch
from .pipeline_config import Compile
from .server import P4RuntimeServer
from .status import PipelineConfigError

if TYPE_CHECKING:
    from ....hostlib.credentials import Credentials

DEFAULT_ADDRESS = "127.0.0.1:9559"


def read_p4info(path: Path) -> p4i.P4Info:
    """Read a P4Info text file; raises PipelineConfigError with what is wrong."""
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), p4i.P4Info())
    except (text_format.ParseError, UnicodeDecodeError) as exc:
        raise PipelineConfigError(f"{path} is not a P4Info text file: {exc}") from exc


def serve(  # noqa: PLR0913 - what it serves, where, and to whom
    switch: Switch,
    p4info: Path | p4i.P4Info | None = None,
    address: str = DEFAULT_ADDRESS,
    *,
    device_id: int | None = None,
    credentials: "Credentials | None" = None,
    insecure: bool = False,
    compile_program: Compile = compile_program,
) -> P4RuntimeServer:
    """Start a P4Runtime server for a switch; stop it before the switch is closed.

    A program that the switch already runs is served under `p4info`; an empty switch waits for
    SetForwardingPipelineConfig. `device_id` is by default the switch's own. With `credentials`,
    controllers and operators alone are served, over TLS. Without them, give `insecure`, or the
    address of a Unix socket (unix:PATH).
    `compile_program` may make other builds of the programs that controllers load.
    Raises AddressInUseError, CredentialsError, or PipelineConfigError if the P4Info does not match
    the program.
    """
    server = P4RuntimeServer(
        switch,
        address=address,
        device_id=switch.device_id if device_id is None else device_id,
        compile_program=compile_program,
        credentials=credentials,
        insecure=insecure,
        port_statistics=switch.ports.all_statistics,
    )
    program = switch.program
    if program is not None:
        assert isinstance(program, CompiledProgram)
        adopt_running(server, p4info, program.model, program)
    server.start()
    return server


def adopt_running(
    server: P4RuntimeServer,
    p4info: Path | p4i.P4Info | None,
    running: Program,
    program: Any = None,
) -> None:
    """Let a server that is not started serve what its data plane runs, under `p4info`.

    `program` is the data plane's build of `running`.
    """
    if p4info is None:
        raise ValueError(f"the switch runs {running.name}: its P4Info is needed to serve it")
    info = read_p4info(p4info) if isinstance(p4info, Path) else p4info
    blob = json.dumps(running.json).encode()
    config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=blob)
    server.device.config.adopt(config, running, program)
