# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at the testbeds of a command before they go down: does everything there use TLS?"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from switchfold.bmv2_topos import Testbed
from switchfold.hostlib.credentials.grpc_channels import handshake_problem


@dataclass
class SecuredTestbeds:
    """What the testbeds of a test have shown."""

    answers: dict[str, str] = field(default_factory=dict[str, str])
    """What a caller without TLS learns at each address of a controller or switch."""
    logs: dict[str, str] = field(default_factory=dict[str, str])
    """Of all processes."""

    def look(self, testbed: Testbed) -> None:
        """Call the servers of a testbed that is up, and read its logs."""
        for address in (testbed.controller_address, *testbed.switch_addresses.values()):
            self.answers[address] = handshake_problem(address, None, "anybody")
        for path in testbed.run_directory.glob("*.log"):
            self.logs[path.stem] = path.read_text("utf-8", errors="replace")

    def check(self, *processes: str) -> None:
        """Fail unless all was encrypted, in these processes and others; nobody needed a choice."""
        assert len(self.answers) >= 2
        for address, answer in self.answers.items():
            assert answer.startswith("it wants TLS and a certificate"), (address, answer)
        assert self.logs.keys() >= {"controller", "s1", *processes}, self.logs.keys()
        assert [name for name, log in self.logs.items() if "INSECURE" in log] == []


@pytest.fixture
def secured_testbeds(monkeypatch: pytest.MonkeyPatch, no_choice: None) -> SecuredTestbeds:
    """Look at each testbed that goes down in this test, which has chosen nothing."""
    seen, down = SecuredTestbeds(), Testbed.down

    def look_and_leave(testbed: Testbed) -> None:
        seen.look(testbed)
        down(testbed)

    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    monkeypatch.setattr(Testbed, "down", look_and_leave)
    return seen
