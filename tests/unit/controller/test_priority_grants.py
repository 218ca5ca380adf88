# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which priority a job is granted, what switches are told of it, and what outlives a restart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy import P4TableAction, P4TableEntry

from controller_fixtures import fake_switch, join_all, make_config, run, serving
from fake_p4runtime import FakeP4Runtime
from planned_trees import leaf_spine, worker_at
from switchfold.controller.api.operator_messages import job_message
from switchfold.controller.config import ControllerConfig, SwitchConfig, load_config
from switchfold.controller.database.database import Database
from switchfold.controller.database.view_record import dump_view, load_view
from switchfold.controller.errors import ConfigError
from switchfold.controller.jobs.job import Job, PathChoice, View, ViewState
from switchfold.controller.jobs.job_request import JobRequest
from switchfold.controller.server import ControllerServer
from switchfold.controller.tables import worker_admission
from switchfold.controller.views.views import Views


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.sqlite3")
    yield database
    database.close()


def planned(
    database: Database, *, asked: int, limit: int, queues: dict[str, int], **options: Any
) -> View:
    """Plan a job of a worker at l1 and one at l2, whose tree has a spine p1."""
    switches, links = leaf_spine(2, 1)
    configured = tuple(
        dataclasses.replace(switch, priority_queues=queues.get(switch.name, 8))
        for switch in switches
    )
    config = ControllerConfig(switches=configured, links=tuple(links), max_priority=limit)
    job = database.create_job(JobRequest(name="a", num_workers=2, max_priority=asked, **options))
    members = [worker_at(0, "l1", 1, 7000), worker_at(1, "l2", 1, 7000)]
    return Views(config, database, {}).plan(job, members)


def admitted(view: View, switch: str, *limit: int) -> int:
    """Return what the entry of a view's tree at a switch lets through."""
    (placement,) = view.placements(switch)
    *_, entry = worker_admission.table_entries(placement, *limit)
    assert entry.table_id == worker_admission.TREE_TABLE
    return _max_priority(entry)


def _max_priority(entry: P4TableEntry) -> int:
    assert isinstance(entry.action, P4TableAction)
    return int(entry.action.args["max_priority"])


def let_through(server: ControllerServer, fake: FakeP4Runtime) -> list[int]:
    """Return what the trees that switch s1 holds let through."""
    schema = server.links["s1"].program.schema
    held = [
        P4TableEntry.decode(entity, schema)
        for entity in fake.entities.values()
        if entity.HasField("table_entry")
    ]
    return [_max_priority(e) for e in held if e.table_id == worker_admission.TREE_TABLE]


@pytest.mark.parametrize(
    ("asked", "limit", "queues", "granted"),
    [
        (0, 7, {}, 0),
        (5, 0, {}, 0),  # as an operator who says nothing has it
        (5, 7, {}, 5),
        (7, 4, {}, 4),
        (7, 7, {"p1": 3}, 2),
        (7, 7, {"l2": 1}, 0),
    ],
)
def test_least_of_job_operator_and_switches_is_granted(
    database: Database, asked: int, limit: int, queues: dict[str, int], granted: int
) -> None:
    view = planned(database, asked=asked, limit=limit, queues=queues)
    assert sorted(view.switches) == ["l1", "l2", "p1"]
    assert view.max_priority == granted
    assert [admitted(view, switch) for switch in view.switches] == [granted] * 3


def test_default_is_one_queue_for_all_jobs() -> None:
    switch = SwitchConfig(name="s1", address="127.0.0.1:1", priority_queues=8)
    assert ControllerConfig(switches=(switch,)).priority_limit("s1") == 0
    one_queue = SwitchConfig(name="s1", address="127.0.0.1:1")
    assert ControllerConfig(switches=(one_queue,), max_priority=7).priority_limit("s1") == 0


def test_job_between_hosts_has_no_priority(database: Database) -> None:
    view = planned(database, asked=7, limit=7, queues={}, path=PathChoice.HOST)
    assert not view.is_on_switch
    assert view.max_priority == 0


def test_next_view_has_what_its_own_switches_let_through(database: Database) -> None:
    """A job whose workers are left at one switch no longer depends on the others."""
    view = planned(database, asked=7, limit=7, queues={"p1": 3, "l1": 6})
    job = _running(database, view)
    switches, links = leaf_spine(2, 1)
    configured = tuple(dataclasses.replace(switch, priority_queues=6) for switch in switches)
    config = ControllerConfig(switches=configured, links=tuple(links), max_priority=7)
    views = Views(config, database, {})
    after = views.plan(job, [worker_at(0, "l1", 1, 7000)], replacing=view)
    assert (view.max_priority, after.max_priority, after.switches) == (2, 5, ("l1",))


def test_switch_with_fewer_queues_than_before_lets_no_more_through(database: Database) -> None:
    view = planned(database, asked=7, limit=7, queues={})
    assert (admitted(view, "l1"), admitted(view, "l1", 3), admitted(view, "l1", 7)) == (7, 3, 7)


def test_grants_and_requests_are_in_the_database(database: Database, tmp_path: Path) -> None:
    view = planned(database, asked=6, limit=4, queues={})
    _running(database, view)
    database.close()
    again = Database(tmp_path / "state.sqlite3")
    (job,) = again.jobs()
    assert job.max_priority == 6
    assert job.view is not None
    assert job.view.max_priority == 4
    shown = job_message(job, job.workers, set(), ())
    assert (shown.max_priority_wanted, shown.max_priority) == (6, 4)
    again.close()


def test_view_of_an_earlier_release_has_no_priority(database: Database) -> None:
    raw = json.loads(dump_view(planned(database, asked=6, limit=7, queues={})))
    assert raw.pop("max_priority") == 6
    assert load_view(json.dumps(raw)).max_priority == 0


def _running(database: Database, view: View) -> Job:
    database.store_view(dataclasses.replace(view, state=ViewState.INSTALLED))
    return database.start_job(view.job_number)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_priority = 8", "max_priority must lie in 0..7"),
        ("max_priority = -1", "max_priority must lie in 0..7"),
        ("[[switch]]\npriority_queues = 0", "priority_queues must lie in 1..8"),
        ("[[switch]]\npriority_queues = 9", "switch s1: priority_queues must lie in 1..8"),
        ("[[switch]]\npriority_queues = true", "not of type int"),
    ],
)
def test_impossible_configuration_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "controller.toml"
    switch = 'name = "s1"\naddress = "127.0.0.1:1"\n'
    text = f"{line}\n{switch}" if line.startswith("[[") else f"{line}\n[[switch]]\n{switch}"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        load_config(path)


def test_workers_and_switch_are_told_and_a_restart_with_less_takes_it_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as fake:

            def config(limit: int) -> ControllerConfig:
                made = make_config(tmp_path, fake, reconnect_grace_s=60.0, max_priority=limit)
                (switch,) = made.switches
                switch = dataclasses.replace(switch, priority_queues=6)
                return dataclasses.replace(made, switches=(switch,))

            async with serving(config(7)) as first:
                workers = await join_all(first.address, 2, max_priority=7)
                granted = [(await worker.join_reply()).view.max_priority for worker in workers]
                assert (granted, let_through(first, fake)) == ([5, 5], [5])
                for worker in workers:
                    await worker.close()
            async with serving(config(2)) as second:
                assert let_through(second, fake) == [2]
                await second.membership.stop_job("train", "test")
                assert let_through(second, fake) == []

    run(scenario())
