# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a P4Runtime server for a `softswitch.Switch`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from ...compilation.compiler import CompiledProgram, compile_program
from ...program.model import Program
from ...switch.switch import Switch
from .dataplane import DataPlane
from .pipeline_config import Compile
from .port_statistics import Counters
from .server import P4RuntimeServer
from .status import PipelineConfigError
from .tls import TlsFiles

DEFAULT_ADDRESS = "127.0.0.1:9559"


def read_p4info(path: Path) -> p4i.P4Info:
    """Read a P4Info text file; PipelineConfigError says what is wrong with it."""
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), p4i.P4Info())
    except (text_format.ParseError, UnicodeDecodeError) as exc:
        raise PipelineConfigError(f"{path} is not a P4Info text file: {exc}") from exc


def serve(
    switch: Switch,
    p4info: Path | p4i.P4Info | None = None,
    address: str = DEFAULT_ADDRESS,
    *,
    device_id: int | None = None,
    tls: TlsFiles | None = None,
    compile_program: Compile = compile_program,
) -> P4RuntimeServer:
    """Start a P4Runtime server for a switch; stop it before the switch is closed.

    A program that the switch runs already is served under `p4info`; an empty switch waits for
    SetForwardingPipelineConfig. `device_id` is the switch's own unless given; `tls` encrypts;
    `compile_program` makes other builds of the programs that controllers bring.
    Raises AddressInUseError, TlsError and PipelineConfigError where the P4Info does not match the
    program.
    """
    program = switch.program
    running: Program | None = None
    if program is not None:
        assert isinstance(program, CompiledProgram)
        running = program.model
    return serve_dataplane(
        switch,
        address=address,
        device_id=switch.device_id if device_id is None else device_id,
        compile_program=compile_program,
        p4info=p4info,
        running=running,
        program=program,
        tls=tls,
        port_statistics=switch.ports.all_statistics,
    )


def serve_dataplane(
    dataplane: DataPlane,
    *,
    address: str,
    device_id: int,
    compile_program: Compile,
    p4info: Path | p4i.P4Info | None = None,
    running: Program | None = None,
    program: Any = None,
    tls: TlsFiles | None = None,
    port_statistics: Callable[[], Counters] | None = None,
) -> P4RuntimeServer:
    """Start a server; with `running`, the data plane's program is served under `p4info` at once."""
    server = P4RuntimeServer(
        dataplane,
        address=address,
        device_id=device_id,
        compile_program=compile_program,
        tls=tls,
        port_statistics=port_statistics,
    )
    if running is not None:
        if p4info is None:
            raise ValueError(f"the switch runs {running.name}: its P4Info is needed to serve it")
        info = read_p4info(p4info) if isinstance(p4info, Path) else p4info
        blob = json.dumps(running.json).encode()
        config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=blob)
        server.device.config.adopt(config, running, program)
    server.start()
    return server
