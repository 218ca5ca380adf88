# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Any v1model program in a Mininet network: for `mn --custom`, and for scripts.

    mn --custom .../switchfold/bmv2_topos/mininet_custom.py --controller none --arp --mac \\
       --topo single,2 --switch p4,program=/tmp/router.json,entries=/tmp/entries.txt

    net = Mininet(topo=..., switch=partial(P4Switch, program="router.json"), controller=None)

`program` is a compiled program, `entries` a file or folder of entries, `target` softswitch or bmv2.
Switch number n has device id n, and P4Runtime at unix:DIRECTORY/NAME.sock, where `directory` is by
default a folder that vanishes with the switch. Port numbers are those of Mininet.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from switchfold.bmv2_topos.errors import OwnProgramError
from switchfold.bmv2_topos.mininet_module import load_mininet
from switchfold.bmv2_topos.network.links import turn_offloads_off
from switchfold.bmv2_topos.network.namespaces import call_in_namespace
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.own_program import OwnProgram
from switchfold.bmv2_topos.processes.plain_switch import PlainSwitch
from switchfold.bmv2_topos.processes.processes import ManagedProcess
from switchfold.p4src.errors import ProgramFilesError
from switchfold.p4src.own_program import program_files_in

_NODE: Final = load_mininet("mininet.node")


class P4Switch(_NODE.Switch):
    """A switch of a Mininet network with a program of the user's own."""

    def __init__(
        self,
        name: str,
        *,
        program: str,
        entries: str | None = None,
        target: str = "softswitch",
        directory: str | None = None,
        **parameters: Any,
    ) -> None:
        """Read where the program is; OwnProgramError where there is none."""
        if target not in {"softswitch", "bmv2"}:
            raise ValueError(f"target {target!r} is neither softswitch nor bmv2")
        try:
            files = program_files_in(Path(program))
        except ProgramFilesError as exc:
            raise OwnProgramError(str(exc)) from exc
        _NODE.Switch.__init__(self, name, **parameters)
        self._own = OwnProgram(files=files, entries=Path(entries).absolute() if entries else None)
        self._target: Target = cast("Target", target)
        self._is_temporary = directory is None
        self._directory = Path(directory or tempfile.mkdtemp(prefix="sf-mn-"))
        self._process: ManagedProcess | None = None

    @property
    def p4runtime_address(self) -> str:
        """gRPC address of the switch's P4Runtime server."""
        return self._plain().address

    def start(self, _controllers: Sequence[object]) -> None:
        """Start the switch; returns once it runs the program with its entries."""
        namespace = _namespace_of(self) if self.inNamespace else None
        if self._target == "bmv2":
            self._turn_offloads_off()
        self._process = self._plain().start(namespace)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Stop the switch."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)
        _NODE.Switch.stop(self, deleteIntfs)

    def _turn_offloads_off(self) -> None:
        """Have senders complete what they leave to network cards, which BMv2 does not complete."""
        links = [interface.link for interface in self.intfs.values() if interface.link]
        for end in (end for link in links for end in (link.intf1, link.intf2)):
            call_in_namespace(
                _namespace_of(end.node), lambda interface=end.name: turn_offloads_off(interface)
            )

    def _plain(self) -> PlainSwitch:
        names = {port: str(intf) for port, intf in self.intfs.items() if str(intf) != "lo"}
        digits = "".join(letter for letter in self.name if letter.isdecimal())
        return PlainSwitch(
            name=self.name,
            device_id=int(digits or 1),
            interfaces=names,
            program=self._own,
            run_directory=self._directory,
            target=self._target,
        )


def _namespace_of(node: Any) -> str:
    """Return the path of a node's namespace, which has no name."""
    return f"/proc/{node.pid}/ns/net"


switches: Final = {"p4": P4Switch}
"""What `mn --switch` knows by name."""
