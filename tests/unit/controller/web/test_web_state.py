# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the web page reads: switches, hosts, links, trees and jobs as the controller knows them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from controller_fixtures import fake_switch, join_all, make_config, run, serving
from fake_p4runtime import FakeP4Runtime
from switchfold.controller.config import ControllerConfig, LinkConfig
from switchfold.controller.server import ControllerServer
from switchfold.controller.web.state import PageState, shown_by


def with_fabric(config: ControllerConfig) -> ControllerConfig:
    """Two switches with a link; the first one has the hosts h1, of a stated rate, to h4."""
    one, other = config.switches
    first = dataclasses.replace(one.hosts[0], rate_bits_per_s=80_000_000)
    one = dataclasses.replace(one, hosts=(first, *one.hosts[1:]), service_address="10.0.255.1")
    other = dataclasses.replace(other, service_address="10.0.255.2")
    link = LinkConfig(a="s1", a_port=9, b="s2", b_port=1, rate_bits_per_s=8_000_000)
    return dataclasses.replace(config, switches=(one, other), links=(link,))


@asynccontextmanager
async def two_switches(folder: Path) -> AsyncGenerator[tuple[ControllerServer, FakeP4Runtime]]:
    """Yield the controller of this fabric, and the second switch."""
    async with (
        fake_switch() as one,
        fake_switch() as other,
        serving(with_fabric(make_config(folder, one, other))) as server,
    ):
        yield server, other


def shown(server: ControllerServer) -> dict[str, Any]:
    """Return the state as a browser reads it."""
    return json.loads(json.dumps(dataclasses.asdict(server.show_state())))


def test_idle_fabric_shows_switches_hosts_and_links(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two_switches(tmp_path) as (server, _):
            state = shown(server)
        assert (state["is_leader"], state["is_database_up"]) == (True, True)
        assert state["jobs"] == []
        assert [switch["name"] for switch in state["switches"]] == ["s1", "s2"]
        assert {(s["state"], s["error"]) for s in state["switches"]} == {("ready", "")}
        assert {(s["used_slots"], s["slots"]) for s in state["switches"]} == {(0, 1024)}
        assert [host["name"] for host in state["hosts"]] == ["h1", "h2", "h3", "h4"]
        assert {(host["switch"], *host["workers"]) for host in state["hosts"]} == {("s1",)}
        by_name = {link["name"]: link for link in state["links"]}
        assert list(by_name) == ["s1-s2", "h1-s1", "h2-s1", "h3-s1", "h4-s1"]
        assert by_name["s1-s2"]["key"] == "s1:9-s2:1"
        assert (by_name["s1-s2"]["state"], by_name["s1-s2"]["is_host"]) == ("up", False)
        assert by_name["s1-s2"]["rate_bits_per_s"] == 8_000_000
        assert by_name["h1-s1"]["rate_bits_per_s"] == 80_000_000
        assert by_name["h2-s1"]["rate_bits_per_s"] is None
        assert (by_name["h2-s1"]["key"], by_name["h2-s1"]["is_host"]) == ("s1:2", True)

    run(scenario())


def test_running_job_shows_its_tree_over_the_links(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two_switches(tmp_path) as (server, _):
            workers = await join_all(server.address, 2)
            for worker in workers:
                await worker.join_reply()
            state = shown(server)
            for worker in workers:
                await worker.close()
        (job,) = state["jobs"]
        assert (job["name"], job["state"], job["path"]) == ("train", "running", "switch")
        assert (job["num_workers"], job["missing"], job["reason"]) == (2, [], "")
        (tree,) = job["trees"]
        assert (tree["root"], tree["slots"]) == ("s1", 128)
        assert tree["links"] == ["s1:1", "s1:2"]
        assert set(tree["links"]) <= {link["key"] for link in state["links"]}
        workers_on = {host["name"]: host["workers"] for host in state["hosts"]}
        assert workers_on == {"h1": ["train 0"], "h2": ["train 1"], "h3": [], "h4": []}
        used = {switch["name"]: switch["used_slots"] for switch in state["switches"]}
        assert used == {"s1": 128, "s2": 0}

    run(scenario())


def test_measured_rates_are_those_of_the_links_directions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two_switches(tmp_path) as (server, _):
            await server.fabric_watch.meter.sample()
            await server.fabric_watch.meter.sample()
            total = {
                direction: 1000.0 * direction.port + direction.is_inward
                for direction in server.fabric_watch.meter.usage.total
            }
            usage = dataclasses.replace(server.fabric_watch.meter.usage, total=total)
            server.fabric_watch.meter.usage = usage
            state = shown(server)
        by_name = {link["name"]: link for link in state["links"]}
        rates = {n: (x["forward_bits_per_s"], x["backward_bits_per_s"]) for n, x in by_name.items()}
        assert rates["s1-s2"] == (9000.0, 1000.0)  # out of port 9 of s1, out of port 1 of s2
        assert rates["h2-s1"] == (2001.0, 2000.0)  # into port 2 of s1, out of it

    run(scenario())


def test_worker_of_a_host_that_no_file_lists_has_a_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as fake:
            config = make_config(tmp_path, fake)
            bare = dataclasses.replace(config.switches[0], hosts=())
            async with serving(dataclasses.replace(config, switches=(bare,))) as server:
                workers = await join_all(server.address, 2, ingress_port=7, mac="02:00:00:00:00:07")
                for worker in workers:
                    await worker.join_reply()
                state = shown(server)
                for worker in workers:
                    await worker.close()
        assert [(h["name"], h["workers"]) for h in state["hosts"]] == [
            ("10.0.0.1", ["train 0"]),
            ("10.0.0.2", ["train 1"]),
        ]
        assert {link["key"] for link in state["links"]} == {"s1:7"}

    run(scenario())


def test_waiting_job_names_who_is_missing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as server:
            (worker,) = await join_all(server.address, 1, num_workers=3)
            while (live := server.membership.live_job("train")) is None or not live.leases:
                await asyncio.sleep(0.01)
            (job,) = shown(server)["jobs"]
            await worker.close()
        assert (job["state"], job["num_workers"], job["missing"]) == ("waiting", 1, [1, 2])
        assert (job["path"], job["trees"], job["tree_bits_per_s"]) == ("", [], None)

    run(scenario())


def test_what_is_out_of_use_or_away_is_shown_with_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two_switches(tmp_path) as (server, other):
            server.fabric_state.set_link("s1-s2", is_up=False)
            assert shown(server)["links"][0]["state"] == "down"
            server.fabric_state.set_link("s1-s2", is_up=True)
            server.fabric_state.set_switch("s2", is_up=False)
            state = shown(server)
            assert state["links"][0]["state"] == "down"
            assert [s["state"] for s in state["switches"]] == ["ready", "down"]
            await other.stop()
            while server.links["s2"].is_ready:
                await asyncio.sleep(0.01)
            server.fabric_state.set_switch("s2", is_up=True)
            away = shown(server)["switches"][1]
        assert away["state"] != "ready"
        assert "s2" in away["error"]

    run(scenario())


def test_standby_shows_that_it_stands_by(tmp_path: Path) -> None:
    async def scenario() -> None:
        assert shown_by(None) == PageState(is_leader=False)
        async with fake_switch() as fake:
            async with serving(make_config(tmp_path, fake)) as server:
                assert shown_by(server).is_leader
            assert shown_by(server) == PageState(is_leader=False)  # its database is closed

    run(scenario())
