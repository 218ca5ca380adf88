# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches that survive, a controller that is killed again and again, and the checks between.

The controller starts on the same database whenever it has died.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import grpc

from kill_points.children import Child, Nursery
from kill_points.generations import GenerationHistory
from kill_points.invariants import violations
from kill_points.members import Members
from kill_points.row_server_process import SERVER_ID
from kill_points.state_file import State, read_files, read_state
from kill_points.switch_tables import Action, Key, SwitchReader, Tables
from kill_points.trigger import POINTS_FILE, REFUSED, Trigger
from switchfold.bmv2_topos import Testbed, Topology
from switchfold.bmv2_topos.processes import daemons
from switchfold.bmv2_topos.processes.tokens import controller_environment
from switchfold.bmv2_topos.topology.topology import SwitchLink, join_host, make_host, make_switch
from switchfold.controller.__main__ import run as run_command
from switchfold.hostlib.credentials import Role, role_name
from switchfold.hostlib.credentials.grpc_channels import open_channel
from time_bound import wait_until

NUM_HOSTS: Final = 5
"""By turns at two switches; the last is the row server's."""
LINK: Final = "s1-s2"
"""Between the switches with hosts."""
OTHER_LINK: Final = "s2-s3"
"""On the other route."""
_LINK_PORT: Final = 9
"""Its port at both ends."""
LIMIT_S: Final = 120.0
"""Far longer than anything takes that does not hang."""
QUIET_S: Final = 1.0
"""A controller that has reached no point for so long has nothing more to do."""
_LOOK_S: Final = 0.01
_OPTIONS: Final = """
resume_grace_s = 5.0
no_route_s = 60.0
lease_s = 60.0
# What a write has left undone must not wait for this.
reconcile_interval_s = 3600.0
"""


class _Switches(Testbed):
    """A testbed whose controller is not its own to start."""

    @property
    def controller_config(self) -> Path:
        return self.run_directory / "controller.toml"

    def start_controller(self) -> None:
        daemons.write_controller_config(
            self.controller_config,
            self.topology,
            listen=self.controller_address,
            switch_addresses=self.switch_addresses,
            variant=self.variant,
        )


class World:
    """`with World(folder) as world`: everything runs, and no job is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._testbed = _Switches(
            triangle(), name=f"kill-{os.getpid()}", mode="udp", variant="narrow"
        )
        self._nursery = Nursery(folder)
        self._trigger = Trigger(folder)
        self._stack = contextlib.ExitStack()
        self._controller: Child | None = None
        self._readers: dict[str, SwitchReader] = {}
        self._row_server: Child | None = None
        self.rows: dict[tuple[int, int], list[list[int]]] = {}
        """What the row server has set, by generation."""
        self.routes: dict[str, dict[Key, Action]] = {}
        """Of each switch, when all links are there."""
        self._kill_at_s: float | None = None
        self._later: list[float | int] = []
        self._disk_back_s = 0.0
        self.members = Members(self._start_worker)
        self.history = GenerationHistory()
        self.deaths: Counter[str] = Counter()
        """Of controllers, by cause."""
        self.checks = 0
        self.clock_shift_s = 0.0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._testbed)
            text = self._testbed.controller_config.read_text()
            (self._folder / "controller.toml").write_text(_OPTIONS + text)
            stack.enter_context(self._nursery)
            for switch in self._testbed.topology.switches:
                channel = stack.enter_context(self._open_channel(switch.name))
                p4info = daemons.program_files("narrow")[1]
                self._readers[switch.name] = SwitchReader(channel, switch.device_id, p4info)
            self._start_controller()
            # It serves when the switches have their routes.
            address = self._testbed.controller_address
            wait_until(lambda: daemons.accepts(address), "the first controller", LIMIT_S)
            self.routes = {n: t.entries["ipv4_forward"] for n, t in self.read_switches().items()}
            assert all(self.routes.values())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open_channel(self, name: str) -> Any:
        return open_channel(
            grpc,
            self._testbed.switch_addresses[name],
            credentials=self._testbed.switch_operator,
            server=role_name(Role.SWITCH, name),
        )

    @property
    def database(self) -> Path:
        """The controller's file."""
        return self._testbed.run_directory / "controller.sqlite3"

    @property
    def points(self) -> list[str]:
        """The names of all points that were reached so far, and the writes that were refused."""
        path = self._folder / POINTS_FILE
        return path.read_text().splitlines() if path.exists() else []

    def kill_at(self, *when: float | int) -> None:
        """Plan deaths, each after the restart from the one before: n-th point, or after seconds."""
        self._later = [*when]
        self._plan_next()

    def _plan_next(self) -> None:
        self._trigger.points_left, self._kill_at_s = 0, None
        match self._later[:1]:
            case [int(number)]:
                self._trigger.points_left = number
            case [float(seconds)]:
                self._kill_at_s = time.monotonic() + seconds
            case _:
                pass
        self._later = self._later[1:]

    def spare(self) -> None:
        """Kill no more."""
        self.kill_at()

    def fill_disk(self, seconds: float) -> None:
        """Let the database refuse all writes for a time."""
        self._trigger.is_disk_full = seconds > 0
        self._disk_back_s = time.monotonic() + seconds

    def settle(self, is_so: Callable[[], object], what: str) -> None:
        """Live on until something is so and all invariants hold, also with what is planned."""
        end_s = time.monotonic() + LIMIT_S
        found: list[str] = ["not looked at yet"]
        while True:
            self.live()
            if is_so():
                found = self._check()
                if not found and not self._awaits_death():
                    break
            assert time.monotonic() < end_s, (
                f"not within {LIMIT_S} s: {what}; {found}; workers that failed, and why:"
                f" {dict(self.members.failures)}\n{self}"
            )
            time.sleep(_LOOK_S)
        self.checks += 1

    @property
    def refused_writes(self) -> int:
        """How many writes a full disk has refused."""
        return self.points.count(REFUSED)

    def _awaits_death(self) -> bool:
        """Whether a death is planned that may still come, or the disk is full."""
        if self._trigger.points_left and time.time() - self._last_point_s() > QUIET_S:
            self.spare()
        is_planned = self._trigger.points_left or self._kill_at_s or self._later
        return bool(is_planned or self._trigger.is_disk_full)

    def await_quiet(self) -> None:
        """Live on until the controller has nothing more to do."""
        while time.time() - self._last_point_s() < QUIET_S:
            self.live()
            time.sleep(_LOOK_S)

    def _last_point_s(self) -> float:
        return (self._folder / POINTS_FILE).stat().st_mtime

    def live(self) -> None:
        """Carry out what is due: kill the controller, start it again, look after the workers."""
        assert self._controller is not None
        if self._kill_at_s is not None and time.monotonic() >= self._kill_at_s:
            self._controller.kill()
            self.deaths["at a random time"] += 1
        elif not self._controller.is_alive():
            assert self._controller.status == -signal.SIGKILL, f"{self._controller}\n{self}"
            self.deaths[self.points[-1]] += 1
        if time.monotonic() >= self._disk_back_s:
            self._trigger.is_disk_full = False
        if not self._controller.is_alive():
            self._start_controller()
            self._plan_next()
        self.members.look()
        if self._row_server is not None:
            for line in self._row_server.new_lines():
                assert "error" not in line, line
                if "rows" in line:
                    self.rows[line["generation"], SERVER_ID] = line["rows"]

    def kill_controller(self) -> None:
        """Kill it; `live` starts another one."""
        assert self._controller is not None
        self._controller.kill()

    def lose_database(self, clock_shift_s: float) -> None:
        """Kill the controller, delete its file, and shift the clock of all that follow."""
        self.clock_shift_s = clock_shift_s
        self.kill_controller()
        for path in self.database.parent.glob(f"{self.database.name}*"):
            path.unlink()
        self.members.forget_sums()
        self.rows.clear()

    def _start_controller(self) -> None:
        self._controller = self._nursery.start(
            "controller",
            str(self._folder),
            str(self.clock_shift_s),
            *("--config", str(self._folder / "controller.toml")),
            environment=controller_environment(self._testbed.run_directory),
        )

    def _start_worker(self, job: str, worker_id: int, is_joining: bool) -> Child:
        environment = self._testbed.endpoint(worker_id).environment(job)
        environment |= {
            "SWITCHFOLD_NUM_WORKERS": "2",
            "SWITCHFOLD_JOINING": str(int(is_joining)),
        }
        return self._nursery.start("worker", environment=environment)

    def start_row_server(self, job: str) -> None:
        """Attach a row server to a job, at the last host."""
        endpoint = self._testbed.endpoint(NUM_HOSTS - 1)
        environment = endpoint.environment(job)
        environment["SWITCHFOLD_CREDENTIALS"] = str(self._testbed.server_credentials.folder)
        self._row_server = self._nursery.start(
            "row server", endpoint.host.address, endpoint.host.mac, environment=environment
        )

    def stop_row_server(self) -> None:
        """Kill the row server."""
        if self._row_server is not None:
            self._row_server.kill()
        self._row_server = None

    def have_ended(self, *jobs: str) -> bool:
        """Whether the database has no job of these names that lives."""
        return not any(
            job["name"] in jobs and job["state"] != "ended" for job in self.state().jobs.values()
        )

    def has_rows(self) -> bool:
        """Whether an installed view has rows that the server has set."""
        views = self.state().installed_views
        return any(self.rows.get((view["generation"], SERVER_ID)) for view in views)

    def end_jobs(self) -> None:
        """Let all workers leave, and wait for the ends of their jobs."""
        self.members.leave_all()
        self.stop_row_server()
        self.settle(
            lambda: self.members.are_none() and not self.state().live_views, "end of all jobs"
        )

    def command(self, *words: str) -> bool:
        """Give the controller an operator's command; return whether it has carried it out."""
        said = io.StringIO()
        address = self._testbed.controller_address
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return run_command([*words, "--controller", address]) == 0

    def uses_link(self, job: str) -> bool:
        """Whether a view of the job is installed whose trees pass over LINK."""
        state = self.state()
        numbers = {n for n, one in state.jobs.items() if one["name"] == job}
        trees = [t for v in state.installed_views if v["job_number"] in numbers for t in v["trees"]]
        parents = [node["parent"] for tree in trees for node in tree["nodes"] if node["parent"]]
        return any(parent["port"] == _LINK_PORT for parent in parents)

    def state(self) -> State:
        """Return what the database says."""
        return read_state(read_files(self.database), self._folder)

    def read_switches(self) -> dict[str, Tables]:
        """Return what the switches hold."""
        return {name: reader.read() for name, reader in self._readers.items()}

    def _check(self) -> list[str]:
        """Return what is wrong now; generations are noted when nothing is."""
        if not daemons.accepts(self._testbed.controller_address):
            return ["the controller does not serve yet"]
        files = read_files(self.database)
        state, switches = read_state(files, self._folder), self.read_switches()
        if read_files(self.database) != files:
            return ["the database is being written"]
        found = violations(state, switches, self.routes, self.rows)
        if not found:
            backwards = self.history.note(state, switches, self.members.generations())
            assert not backwards, f"{backwards}\n{self}"
        return found

    def __str__(self) -> str:
        assert self._controller is not None
        log = self._controller.output.read_text(errors="replace").splitlines()
        return "\n".join(
            ["last points:", *self.points[-12:], "last of the controller's log:", *log[-40:]]
        )


def triangle() -> Topology:
    """Describe two switches with hosts, and a third one, with a link between any two."""
    switches = [make_switch(1), make_switch(2), make_switch(3, level=1)]
    hosts = [make_host(n + 1, subnet=n % 2 + 1, place=n // 2 + 1) for n in range(NUM_HOSTS)]
    links = [join_host(h, switches[n % 2], n // 2 + 1, None) for n, h in enumerate(hosts)]
    between = [
        _between("s1", _LINK_PORT, "s2", _LINK_PORT),
        _between("s1", 8, "s3", 1),
        _between("s2", 8, "s3", 2),
    ]
    return Topology(
        hosts=tuple(hosts),
        switches=tuple(switches),
        links=tuple(links),
        switch_links=tuple(between),
    )


def _between(a: str, a_port: int, b: str, b_port: int) -> SwitchLink:
    return SwitchLink(
        a=a, a_port=a_port, a_interface=f"{a}-eth{a_port}",
        b=b, b_port=b_port, b_interface=f"{b}-eth{b_port}", rate_bits_per_s=None,
    )  # fmt: skip
