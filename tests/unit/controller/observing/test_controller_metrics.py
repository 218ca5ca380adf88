# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a controller: jobs, switches and links as it knows them."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from controller_fixtures import fake_switch, join_all, make_config, run, serving
from fake_station import FakeStation, stations, transfer_controller
from scraped_metrics import ScrapedMetrics, put_values, scrape
from switchfold.controller.config import ControllerConfig, LinkConfig
from switchfold.controller.fabric.fabric_state import FabricState
from switchfold.controller.observing.controller_metrics import ControllerScrape, link_names
from switchfold.controller.server import ControllerServer
from switchfold.hostlib.control.transfers_api import transfers_pb2 as pb
from switchfold.hostlib.credentials import Role
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.metric import Exporter, MetricSamples
from switchfold.hostlib.observing.metrics_server import MetricsServer
from time_bound import until


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
                async with stations(server.address, 1, job_name="other"):
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


def updates(answer: ScrapedMetrics, event: str) -> float:
    return answer.value(table.JOB_UPDATES, job="train", event=event)


def open_updates(answer: ScrapedMetrics, state: str) -> float:
    return answer.value(table.JOB_OPEN_UPDATES, job="train", state=state)


def test_requested_updates_are_committed_dropped_or_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 5, tau_max=1) as (server, workers),
        ):
            applied, under_way, dropped, parked, withdrawn = workers
            job = controller.transfers.job("train")
            await applied.push(applied.first_id)
            await applied.granted()
            await server.deliver(0, applied.first_id, is_early=True)
            await until(lambda: job.counts.commits == 1)
            await under_way.push(under_way.first_id, version=1)
            await under_way.granted()
            await dropped.push(dropped.first_id)
            await dropped.dropped()
            await parked.push(parked.first_id, server_id=9)
            await withdrawn.push(withdrawn.first_id, server_id=9)
            await withdrawn.send(withdrawn=pb.TransferWithdrawn(transfer_id=withdrawn.first_id))
            await server.deliver(4, withdrawn.first_id + 1, is_granted=False)
            await until(lambda: job.counts.withdrawn == job.counts.ungranted == 1)
            await until(lambda: job.counts.pushes == 5)
            answer = await scraped_server(controller)
        ended = [updates(answer, event) for event in ("committed", "dropped", "withdrawn")]
        still_open = [open_updates(answer, state) for state in ("granted", "waiting")]
        assert (ended, still_open) == ([1, 1, 1], [1, 1])
        assert sum(ended) + sum(still_open) == updates(answer, "requested") == 5
        assert [updates(answer, event) for event in ("granted", "early", "ungranted")] == [2, 1, 1]
        assert [updates(answer, event) for event in ("overdue", "refused")] == [0, 0]

    run(scenario())


@pytest.mark.parametrize("is_granted", [True, False])
def test_counters_do_not_decrease_when_an_update_is_refused_late(
    tmp_path: Path, is_granted: bool
) -> None:
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, (worker,)),
        ):
            await worker.push(worker.first_id)
            await worker.granted()
            job = controller.transfers.job("train")
            for is_refused in (False, True):
                await server.deliver(
                    0, worker.first_id, is_granted=is_granted, is_refused=is_refused
                )
            await until(lambda: job.counts.refused == 1)
            assert (job.counts.commits, job.counts.ungranted) == (0, 0)
            answer = await scraped_server(controller)
        counted = [updates(answer, event) for event in ("committed", "ungranted", "refused")]
        assert counted == [is_granted, not is_granted, 1]

    run(scenario())


def test_updates_of_forgotten_workers_stay_counted(tmp_path: Path) -> None:
    """A job forgets lost workers beyond the number of stations that it may have."""

    async def scenario() -> None:
        options = {"max_stations": 2, "reconnect_grace_s": 0.05}
        async with (
            transfer_controller(tmp_path, transfers=options) as controller,
            stations(controller.address, 0) as (server, _),
        ):
            job = controller.transfers.job("train")
            for number in range(4):
                worker = FakeStation(controller.address, Role.WORKER, number)
                await worker.register()
                await worker.push(worker.first_id, version=number)
                await worker.granted()
                await server.deliver(number, worker.first_id)
                place = job.workers[number]
                await until(lambda place=place: place.counts.commits == 1)
                await worker.close()
                await until(lambda place=place: place.station is None)
            assert len(job.workers) < 4
            answer = await scraped_server(controller)
        assert updates(answer, "requested") == updates(answer, "committed") == 4

    run(scenario())


def test_models_are_counted_by_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            transfer_controller(tmp_path) as controller,
            stations(controller.address, 1) as (server, _),
        ):
            for transfer_id, worker_id in enumerate((0, 7), 1):  # nobody is worker 7
                await server.send(
                    model_requested=pb.ModelRequested(
                        transfer_id=transfer_id, worker_id=worker_id, size_bytes=1000
                    )
                )
            tally = controller.transfers.job("train").models.tally
            await until(lambda: tally.granted == tally.ungranted == 1)
            await server.send(model_delivered=pb.ModelDelivered(transfer_id=1))
            await until(lambda: tally.delivered == 1)
            answer = await scraped_server(controller)
        events = {"requested": 2, "granted": 1, "delivered": 1, "ungranted": 1, "relayed": 0}
        for event, number in events.items():
            assert answer.value(table.JOB_MODELS, job="train", event=event) == number

    run(scenario())


def test_jobs_without_stations_have_no_transfer_metrics(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = {"reconnect_grace_s": 0.05}
        async with transfer_controller(tmp_path, transfers=options) as controller:
            async with stations(controller.address, 1):
                assert updates(await scraped_server(controller), "requested") == 0
            await until(lambda: not controller.transfers.jobs)
            answer = await scraped_server(controller)
        assert not answer.values(table.JOB_UPDATES)
        assert not answer.values(table.JOB_OPEN_UPDATES)
        assert not answer.values(table.JOB_MODELS)

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
