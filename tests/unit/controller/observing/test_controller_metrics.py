# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a controller: jobs, switches and links as it knows them."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from controller_fixtures import fake_switch, join_all, make_config, run, serving
from scraped_metrics import ScrapedMetrics, put_values, scrape
from switchfold.controller.config import ControllerConfig, LinkConfig
from switchfold.controller.fabric.fabric_state import FabricState
from switchfold.controller.observing.controller_metrics import ControllerScrape, link_names
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.metric import Exporter, MetricSamples
from switchfold.hostlib.observing.metrics_server import MetricsServer


@pytest.fixture(autouse=True)
def scrapes_wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.controller.observing.controller_metrics._ANSWER_S", 60.0)


def with_fabric(config: ControllerConfig) -> ControllerConfig:
    """Two switches with a link, a host of a stated rate at the first one."""
    one, other = config.switches
    first = dataclasses.replace(one.hosts[0], rate_bits_per_s=80_000_000)
    one = dataclasses.replace(one, hosts=(first, *one.hosts[1:]), service_address="10.0.255.1")
    other = dataclasses.replace(other, service_address="10.0.255.2")
    link = LinkConfig(a="s1", a_port=9, b="s2", b_port=1, rate_bits_per_s=8_000_000)
    return dataclasses.replace(config, switches=(one, other), links=(link,))


async def scraped(scrape_of: ControllerScrape) -> ScrapedMetrics:
    """Scrape as Prometheus does, from outside the loop."""
    metrics = MetricsServer("0", scrape_of.fill)
    try:
        return await asyncio.to_thread(scrape, metrics.address)
    finally:
        await asyncio.to_thread(metrics.close)


async def scraped_server(server: ControllerServer) -> ScrapedMetrics:
    scrape_of = ControllerScrape(asyncio.get_running_loop())
    scrape_of.leader = server
    return await scraped(scrape_of)


def test_leader_exports_jobs_switches_and_links(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as one, fake_switch() as other:
            config = with_fabric(make_config(tmp_path, one, other))
            async with serving(config) as server:
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
                await server.fabric_watch.meter.sample()
                answer = await scraped_server(server)
                for worker in workers:
                    await worker.close()
        exported = {m.name for m in table.METRICS if m.exporter is Exporter.CONTROLLER}
        assert answer.names == exported | {*table.PROCESS_METRICS}
        assert answer.value(table.CONTROLLER_LEADER) == 1
        assert answer.value(table.DATABASE_UP) == 1
        assert answer.value(table.JOBS, state="running") == 1
        assert answer.value(table.JOBS, state="waiting") == 0
        assert answer.value(table.JOB_WORKERS, job="train") == 2
        assert answer.value(table.JOB_MISSING_WORKERS, job="train") == 0
        assert answer.value(table.JOB_SLOTS, job="train") == 128
        assert answer.value(table.JOB_TREES, job="train") == 1
        assert answer.value(table.SWITCH_READY, switch="s2") == 1
        assert answer.value(table.SWITCH_SLOTS, switch="s1", state="used") == 128
        assert answer.value(table.SWITCH_SLOTS, switch="s1", state="free") == 1024 - 128
        assert answer.value(table.LINK_UP, link="s1-s2") == 1
        assert answer.value(table.LINK_CAPACITY, link="s1-s2") == 1_000_000
        assert answer.value(table.LINK_CAPACITY, link="h1-s1") == 10_000_000
        assert not answer.values(table.LINK_CAPACITY, link="h2-s1")
        assert answer.values(table.LINK_BYTES, link="s1-s2", sender="s2")
        assert answer.values(table.LINK_BYTES, link="h2-s1", sender="h2")

    run(scenario())


def test_waiting_job_has_missing_workers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as fake, serving(make_config(tmp_path, fake)) as server:
            (worker,) = await join_all(server.address, 1, num_workers=3)
            while (live := server.membership.live_job("train")) is None or not live.leases:
                await asyncio.sleep(0.01)
            answer = await scraped_server(server)
            await worker.close()
        assert answer.value(table.JOBS, state="waiting") == 1
        assert answer.value(table.JOB_WORKERS, job="train") == 1
        assert answer.value(table.JOB_MISSING_WORKERS, job="train") == 2
        assert answer.value(table.JOB_TREES, job="train") == 0

    run(scenario())


def test_standby_exports_that_it_leads_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        scrape_of = ControllerScrape(asyncio.get_running_loop())
        answer = await scraped(scrape_of)
        assert answer.names == {table.CONTROLLER_LEADER.name, *table.PROCESS_METRICS}
        assert answer.value(table.CONTROLLER_LEADER) == 0
        async with fake_switch() as fake:
            async with serving(make_config(tmp_path, fake)) as server:
                scrape_of.leader = server
                assert (await scraped(scrape_of)).value(table.CONTROLLER_LEADER) == 1
            answer = await scraped(scrape_of)  # its database is closed
        assert answer.value(table.CONTROLLER_LEADER) == 0
        assert table.JOBS.name not in answer.names

    run(scenario())


def test_link_out_of_use_is_not_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fake_switch() as one, fake_switch() as other:
            config = with_fabric(make_config(tmp_path, one, other))
            async with serving(config) as server:
                state: FabricState = server.fabric_state
                state.set_link("s1-s2", is_up=False)
                samples = MetricSamples()
                server.put_metrics(samples)
        assert put_values(samples)[table.LINK_UP.name] == {("s1-s2",): 0}

    run(scenario())


def test_parallel_links_are_named_by_their_ports() -> None:
    links = [
        LinkConfig(a="s1", a_port=1, b="s2", b_port=1),
        LinkConfig(a="s1", a_port=2, b="s2", b_port=2),
        LinkConfig(a="s1", a_port=3, b="s3", b_port=1),
    ]
    assert list(link_names(links).values()) == ["s1:1-s2:1", "s1:2-s2:2", "s1-s3"]
