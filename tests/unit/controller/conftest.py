# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Patience for all tests of the controller."""

from __future__ import annotations

import pytest

from switchfold.controller.api import operator_client
from switchfold.controller.switches import switch_call
from switchfold.controller.switches.switch_session import SwitchSession


@pytest.fixture(autouse=True)
def patient_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give single calls longer than a busy machine takes; tests of limits set their own."""
    monkeypatch.setattr(operator_client, "_TIMEOUT_S", 60.0)
    monkeypatch.setattr(switch_call, "_FETCH_TIMEOUT_S", 60.0)
    # By default, _calls takes the constant _REQUEST_TIMEOUT_S as it was at the import.
    calls = vars(SwitchSession)["_calls"].__wrapped__
    monkeypatch.setattr(calls, "__defaults__", (60.0,))
