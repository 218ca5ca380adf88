# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's own program on the switches of a testbed, with the entries that each starts with."""

from __future__ import annotations

import queue
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import Message

from ...hostlib.credentials import Credentials, Role, role_name
from ...hostlib.credentials.grpc_channels import open_channel
from ...p4src.own_program import ProgramFiles
from ...softswitch.errors import SoftswitchError
from ...softswitch.p4runtime.entities.entries import read_entries
from ..errors import OwnProgramError
from ..topology.topology import Switch

_SERVICE: Final = "/p4.v1.P4Runtime"
_TIMEOUT_S: Final = 60.0
_SUFFIXES: Final = (".txtpb", ".json", ".txt")
_ELECTION_ID: Final = p4r.Uint128(low=1)
AGGREGATION: Final = "switchfold"
"""Name of the programs that our controller drives."""


@dataclass(frozen=True, kw_only=True)
class OwnProgram:
    """What a testbed's switches run instead of a compiled program of the package."""

    files: ProgramFiles
    entries: Path | None = None
    """File of entries for all switches, or a folder with NAME.txtpb, .json or .txt of each."""

    def p4info(self) -> p4i.P4Info:
        """Read the P4Info; OwnProgramError when it is none."""
        try:
            return text_format.Parse(self.files.p4info.read_text(encoding="utf-8"), p4i.P4Info())
        except (text_format.ParseError, UnicodeDecodeError, OSError) as exc:
            raise OwnProgramError(f"{self.files.p4info} is no P4Info: {exc}") from exc

    def is_aggregation(self) -> bool:
        """Tell whether it is a version of the aggregation program, which a controller drives."""
        return self.p4info().pkg_info.name == AGGREGATION

    def entries_of(self, name: str) -> Path | None:
        """Return the file of a switch's first entries; None if there is none for it."""
        if self.entries is None or self.entries.is_file():
            return self.entries
        found = [
            path for suffix in _SUFFIXES if (path := self.entries / f"{name}{suffix}").is_file()
        ]
        return found[0] if found else None


def load_on_switch(
    own: OwnProgram, switch: Switch, address: str, credentials: Credentials | None
) -> None:
    """Load program and entries onto an empty switch through P4Runtime, as BMv2 needs it.

    Raises OwnProgramError with what the switch, or the file of entries, has against it.
    """
    server = role_name(Role.SWITCH, switch.name)
    try:
        with open_channel(grpc, address, credentials=credentials, server=server) as channel:
            _Loading(channel, switch, own).run()
    except grpc.RpcError as exc:
        said: Any = exc
        raise OwnProgramError(
            f"switch {switch.name} refuses {own.files.json}: {said.code().name} {said.details()}"
        ) from exc
    except SoftswitchError as exc:  # of the entries' file
        raise OwnProgramError(str(exc)) from exc


class _Loading:
    """The calls of one primary on one channel."""

    def __init__(self, channel: Any, switch: Switch, own: OwnProgram) -> None:
        self._channel = channel
        self._switch = switch
        self._own = own

    def run(self) -> None:
        requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        stream = self._channel.stream_stream(
            f"{_SERVICE}/StreamChannel",
            request_serializer=p4r.StreamMessageRequest.SerializeToString,
            response_deserializer=p4r.StreamMessageResponse.FromString,
        )
        update = p4r.MasterArbitrationUpdate(
            device_id=self._switch.device_id, election_id=_ELECTION_ID
        )
        requests.put(p4r.StreamMessageRequest(arbitration=update))
        answers: Iterable[p4r.StreamMessageResponse] = stream(
            iter(requests.get, None), timeout=_TIMEOUT_S
        )
        try:
            for answer in answers:  # the first says whether we are primary
                if answer.arbitration.status.code:
                    raise OwnProgramError(f"switch {self._switch.name} has another primary")
                break
            self._load()
        finally:
            requests.put(None)

    def _load(self) -> None:
        info = self._own.p4info()
        config = p4r.ForwardingPipelineConfig(
            p4info=info, p4_device_config=self._own.files.json.read_bytes()
        )
        self._call(
            "SetForwardingPipelineConfig",
            p4r.SetForwardingPipelineConfigRequest(
                device_id=self._switch.device_id,
                election_id=_ELECTION_ID,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            ),
        )
        file = self._own.entries_of(self._switch.name)
        updates = [update for _, update in read_entries(file, info)] if file is not None else []
        if updates:
            request = p4r.WriteRequest(
                device_id=self._switch.device_id, election_id=_ELECTION_ID, updates=updates
            )
            self._call("Write", request)

    def _call(self, method: str, request: Message) -> None:
        # Without a serializer, grpc carries bytes; the answers hold nothing.
        self._channel.unary_unary(f"{_SERVICE}/{method}")(
            request.SerializeToString(), timeout=_TIMEOUT_S
        )
