# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The data plane refuses the recorded writes of a commit: the previous program still runs."""

from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from fake_data_plane import FakeDataPlane
from p4runtime_control_plane import IDS, host
from p4runtime_fixtures import CONTROL_PLANE, BareClient, insert, loaded, modify, serving
from switchfold.softswitch.errors import SoftswitchError, TableFullError
from test_p4runtime_atomicity import CHANGES, STATE, read_all
from test_p4runtime_reconcile import RECONCILE, blob

Set = p4r.SetForwardingPipelineConfigRequest


def _refuse_inserts(monkeypatch: pytest.MonkeyPatch, dataplane: FakeDataPlane, *loads: int) -> None:
    """Let `tables.insert` fail while the program of one of these loads is running."""
    real = dataplane.tables.insert

    def insert_entry(*arguments: Any, **options: Any) -> None:
        if dataplane.num_loads in loads:
            raise TableFullError("no memory for another entry")
        real(*arguments, **options)

    monkeypatch.setattr(dataplane.tables, "insert", insert_entry)


def _refused(client: BareClient, **changes: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        client.push(**changes)
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return caught.value.details() or ""


@pytest.mark.parametrize("action", ["COMMIT", "RECONCILE_AND_COMMIT"])
def test_the_program_before_runs_on(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        for update in STATE:
            client.write(update)
        wanted, state = read_all(client), dataplane.state
        _refuse_inserts(monkeypatch, dataplane, 2)
        other = {"p4info": CONTROL_PLANE.p4info, "blob": blob(host=100)}
        if action == "COMMIT":
            client.push(action=Set.VERIFY_AND_SAVE, **other)
            client.write(insert(host(77)))
            text = _refused(client, action=Set.COMMIT, no_config=True)
        else:
            text = _refused(client, action=RECONCILE, **other)
        assert "no memory for another entry" in text
        assert "the previous program still runs" in text
        assert dataplane.num_loads == 3
        for name in ("entries", "options", "defaults"):  # written once or twice, they are the same
            assert dataplane.state[name].items() >= state[name].items()
            del state[name]
        assert dataplane.state.items() >= state.items()
        if action == "COMMIT":  # what is saved can be committed again
            assert len(client.read_tables(p4r.TableEntry(table_id=IDS["host"]))) == 1
            client.push(action=Set.COMMIT, no_config=True)
            assert len(client.read_tables(p4r.TableEntry(table_id=IDS["host"]))) == 1
            return
        assert read_all(client) == wanted
        for update in CHANGES:
            client.write(update)


def test_without_a_program_before_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (server, dataplane), BareClient(server.port) as client:
        client.become_primary()
        _refuse_inserts(monkeypatch, dataplane, 1)
        program = {"p4info": CONTROL_PLANE.p4info, "blob": CONTROL_PLANE.json}
        client.push(action=Set.VERIFY_AND_SAVE, **program)
        client.write(insert(host(1)))
        text = _refused(client, action=Set.COMMIT, no_config=True)
        assert "the switch has no program now" in text
        assert dataplane.program is None


def test_a_restoration_that_fails_too_leaves_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(host(1)))
        _refuse_inserts(monkeypatch, dataplane, 2, 3)
        monkeypatch.setattr(dataplane.tables, "insert_many", _refuse_all)
        other = {"p4info": CONTROL_PLANE.p4info, "blob": blob(host=100)}
        text = _refused(client, action=RECONCILE, **other)
        assert "the switch has no program now" in text
        assert dataplane.program is None
        with pytest.raises(grpc.RpcError, match="No forwarding pipeline config"):
            client.write(modify(host(1)))


def _refuse_all(*_: Any, **__: Any) -> tuple[int, dict[int, SoftswitchError]]:
    raise TableFullError("no memory for another entry")
