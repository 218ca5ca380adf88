# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's web page in a browser, while jobs come and go and switches die."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from browser import Browser, browser, needs_browser
from controller_fixtures import HOSTS, FakeWorker, fake_switch, make_config, run, serving
from fake_p4runtime import FakeP4Runtime
from live_testbed import DEADLINE_S, LiveTestbed
from switchfold.controller.config import LinkConfig
from switchfold.controller.server import ControllerServer
from switchfold.controller.web.server import WebServer
from switchfold.controller.web.state import shown_by
from time_bound import wait_until

pytestmark = needs_browser
PHONE = (390, 844)
DESKTOP = (1280, 800)
IDLE = "2 switches · 4 hosts · 5 links · 0 jobs"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("w")) as opened:
        yield opened


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """Yield the window, of a desktop; pages must have had nothing to complain about."""
    window.resize(*DESKTOP)
    yield window
    assert window.complaints() == []


@dataclasses.dataclass(frozen=True)
class Scene:
    server: ControllerServer
    second: FakeP4Runtime
    page: Browser

    async def look(self, check: Callable[[Browser], None]) -> None:
        """Look at the page from another thread: the controller goes on meanwhile."""
        await asyncio.to_thread(check, self.page)


@asynccontextmanager
async def opened(folder: Path, page: Browser) -> AsyncGenerator[Scene]:
    """Open the page of a controller with two switches that a link joins: s1 has the hosts."""
    async with fake_switch() as one, fake_switch() as other:
        config = make_config(folder, one, other)
        first, second = config.switches
        second = dataclasses.replace(second, service_address="10.0.255.2")
        link = LinkConfig(a="s1", a_port=9, b="s2", b_port=1, rate_bits_per_s=8_000_000)
        config = dataclasses.replace(config, switches=(first, second), links=(link,))
        async with serving(config) as server:
            web = WebServer("0", lambda: shown_by(server))
            async with web.listen():
                scene = Scene(server, other, page)
                await asyncio.to_thread(page.open, f"http://{web.address}/")
                await scene.look(lambda shown: shown.wait_for_text("#summary", IDLE))
                yield scene
                await asyncio.to_thread(page.open, "about:blank")  # which asks for nothing


async def start(address: str, name: str, hosts: tuple[int, ...]) -> list[FakeWorker]:
    """Start a job with a worker on each of these hosts, such as 1 for h1."""
    workers = [
        await FakeWorker(
            address, i, len(hosts), job_name=name, address=HOSTS[host - 1].address
        ).join()
        for i, host in enumerate(hosts)
    ]
    for worker in workers:
        await worker.join_reply()
    return workers


async def close_all(workers: list[FakeWorker]) -> None:
    for worker in workers:
        await worker.close()


def trees_of(page: Browser, job: str) -> set[str]:
    """Return the keys of the links over which a job's trees are drawn."""
    keys = page.run(
        "return [...document.querySelectorAll('.branch')]"
        ".filter(each => each.dataset.job === arguments[0]).map(each => each.dataset.link)",
        job,
    )
    return set(keys)


def wait_for_trees(page: Browser, job: str, keys: set[str]) -> None:
    """Wait until a job's trees are drawn over these links."""
    wait_until(
        lambda: trees_of(page, job) == keys, lambda: f"{keys}: {trees_of(page, job)} are drawn"
    )


def test_fabric_without_a_job(tmp_path: Path, page: Browser) -> None:
    def check(shown: Browser) -> None:
        assert shown.texts("#jobs tbody") == ["no job is waiting or running"]
        assert shown.texts("#switches tbody td:first-child") == ["s1", "s2"]
        assert len(shown.texts("[data-switch]")) == 2
        assert len(shown.texts("[data-host]")) == 4
        assert len(shown.texts(".link")) == 5
        assert shown.texts(".link.bad") == []
        # There is one for a while if an answer took long.
        wait_until(lambda: shown.texts("#notice") == [""], "no notice")

    async def scenario() -> None:
        async with opened(tmp_path, page) as scene:
            await scene.look(check)

    run(scenario())


def test_jobs_and_their_trees_come_and_go_by_themselves(tmp_path: Path, page: Browser) -> None:
    def check_both(shown: Browser) -> None:
        wait_for_trees(shown, "odd", {"s1:1", "s1:3"})
        wait_for_trees(shown, "even", {"s1:2", "s1:4"})
        assert len(shown.texts("[data-switch=s1] .root")) == 2
        assert shown.texts("[data-switch=s2] .root") == []

    def check_one(shown: Browser) -> None:
        shown.wait_for_text("#summary", "1 job")
        assert trees_of(shown, "odd") == set()
        assert trees_of(shown, "even") == {"s1:2", "s1:4"}

    async def scenario() -> None:
        async with opened(tmp_path, page) as scene:
            odd = await start(scene.server.address, "odd", (1, 3))
            even = await start(scene.server.address, "even", (2, 4))
            await scene.look(check_both)
            await scene.server.membership.stop_job("odd", "asked for")
            await scene.look(check_one)
            await close_all(odd + even)

    run(scenario())


def test_checkbox_hides_the_trees_of_a_job_until_it_is_set_again(
    tmp_path: Path, page: Browser
) -> None:
    def check(shown: Browser) -> None:
        before = {"s1:1", "s1:2"}
        wait_for_trees(shown, "train", before)
        shown.run("document.querySelector('#jobs input').click()")
        assert trees_of(shown, "train") == set()
        shown.run("document.querySelector('#jobs input').click()")
        assert trees_of(shown, "train") == before

    async def scenario() -> None:
        async with opened(tmp_path, page) as scene:
            workers = await start(scene.server.address, "train", (1, 2))
            await scene.look(check)
            await close_all(workers)

    run(scenario())


def test_nothing_sticks_out_of_the_page(tmp_path: Path, page: Browser) -> None:
    name = "j" * 63

    def check(shown: Browser) -> None:
        shown.wait_for_text("#jobs", name)
        for size in (PHONE, DESKTOP):
            shown.resize(*size)
            assert shown.run("return innerWidth") == size[0]
            assert shown.run("return document.documentElement.scrollWidth") <= size[0]

    async def scenario() -> None:
        async with opened(tmp_path, page) as scene:
            workers = await start(scene.server.address, name, (1, 2, 3))
            await scene.look(check)
            await close_all(workers)

    run(scenario())


def test_dead_switch_and_link_out_of_use_are_seen(tmp_path: Path, page: Browser) -> None:
    def check_link(shown: Browser) -> None:
        shown.wait_for_text("#summary", "1 out of use")
        assert len(shown.texts(".link.bad")) == 1
        assert "down" in shown.texts("#links tbody tr")[0]

    def check_switch(shown: Browser) -> None:
        shown.wait_for_text("#summary", "1 not ready")
        states = shown.texts("#switches tbody td:nth-child(2)")
        assert states[0] == "ready"
        assert len(shown.texts(".node.bad")) == 1

    async def scenario() -> None:
        async with opened(tmp_path, page) as scene:
            scene.server.fabric_state.set_link("s1-s2", is_up=False)
            await scene.look(check_link)
            await scene.second.stop()
            await scene.look(check_switch)

    run(scenario())


def test_page_of_a_controller_process_shows_rates_and_its_end(tmp_path: Path) -> None:
    ones = np.ones(100_000, np.float32)
    with (
        LiveTestbed(2, controller_options=("--web", "0")) as testbed,
        browser(tmp_path) as page,
    ):
        log = (testbed.made.run_directory / "controller.log").read_text("utf-8")
        found = re.search(r"the web page is at (http://\S+)", log)
        assert found is not None, log
        page.open(found[1])
        page.wait_for_text("#summary", "1 switch · 2 hosts · 2 links")
        with testbed.sessions(2) as sessions:

            def shows_rates() -> bool:
                for future in [session.allreduce(ones) for session in sessions]:
                    assert (future.result(DEADLINE_S) == 2).all()
                texts = page.texts("#links tbody td:nth-child(3)")
                return any(re.search("[kM]bit", text) for text in texts)

            wait_until(shows_rates, "rates", interval_s=0.2)
            wait_for_trees(page, "train", {"s1:1", "s1:2"})
        testbed.kill("controller")
        page.wait_for_text("#notice", "The controller does not answer")
        assert "What is shown is of" in page.texts("#notice")[0]
        assert page.texts("#summary")[0].startswith("1 switch")
