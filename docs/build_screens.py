# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of screens in docs/images (screen_*.png) from testbeds; needs root."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from browser import CHROMIUM, DRIVER, Browser, browser  # noqa: E402
from fabric_job import LIMIT_S, FabricJob  # noqa: E402
from switchfold.bmv2_topos import Testbed, leaf_spine, single_switch  # noqa: E402
from switchfold.hostlib.parameter_server.tables import TensorDefinition  # noqa: E402
from switchfold.hostlib.parameter_server.transfers import FabricWorker  # noqa: E402
from time_bound import wait_until  # noqa: E402

PROGRAM: Final = (sys.executable, "-m", "switchfold.controller")
IMAGES: Final = ROOT / "docs" / "images"
PAGE_SIZE: Final = (1120, 800)
REPORT_SIZE: Final = (1280, 1000)
MOST_BYTES: Final = 200_000
TERMINAL: Final = """<!doctype html><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<body style="margin:0;background:{background}"><pre style="margin:0;padding:14px 18px;
display:inline-block;color:{foreground};font:14px/16px 'DejaVu Sans Mono',monospace">{code}</pre>
"""
"""Lines are no higher than the font, so that those of tables meet."""
WORKER: Final = """
import sys, time
import numpy as np
from switchfold.hostlib.config import join_from_environment
with join_from_environment() as session:
    gradient = np.ones(500_000, np.float32)
    while True:
        session.allreduce(gradient).result()
        time.sleep(float(sys.argv[1]) if session.view.worker_id == 2 else 0.0)
"""
"""Sums until it is stopped; worker 2 computes for some seconds in between."""
JOBS: Final = {"resnet": ("h1,h2,h3,h4", "0.6"), "small": ("h1,h3", "0")}
"""The hosts of each job, and how long its worker 2 computes."""
PROVED_SECTIONS: Final = 2
"""Of the report: the proofs, and the loss."""
SCHEDULED_WORKERS: Final = 6
SCHEDULED_VALUES: Final = 400_000


def keep(page: Browser, name: str, height: int | None = None) -> None:
    """Write docs/images/screen_NAME.png: a page down to this height, or all of it.

    It has the few colours that screens have, the rare ones of small marks among them.
    """
    path = IMAGES / f"screen_{name}.png"
    page.screenshot(path)
    taken = Image.open(path).convert("RGB")
    shown = taken.crop((0, 0, taken.width, height or taken.height))
    shown.quantize(128, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"error: {path} has more than {MOST_BYTES} bytes")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes", flush=True)


def switchfold(*words: str) -> str:
    """Return what a command prints in a terminal of 100 columns."""
    done = subprocess.run(
        [*PROGRAM, *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100", "FORCE_COLOR": "1", "TERM": "xterm-256color"},
    )
    return done.stdout


def terminal(page: Browser, folder: Path, name: str, command: str, printed: str) -> None:
    """Write a picture of a terminal in which a command has printed a text."""
    text = Text.from_ansi(f"\x1b[1m$ {command}\x1b[0m\n{printed}".rstrip())
    with (folder / "console").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=200, file=nowhere, force_terminal=True)
        console.print(text, no_wrap=True)
        html = console.export_html(theme=SVG_EXPORT_THEME, inline_styles=True, code_format=TERMINAL)
    file = folder / f"{name}.html"
    file.write_text(html, "utf-8")
    page.resize(*PAGE_SIZE)
    page.open(file.as_uri())
    box = "document.querySelector('pre').getBoundingClientRect()"
    page.resize(*page.run(f"return [Math.ceil({box}.width), Math.ceil({box}.height)]"))
    keep(page, name)


@contextmanager
def running_jobs(testbed: Testbed, folder: Path) -> Generator[None]:
    """Let the workers of all jobs sum."""
    script = folder / "worker.py"
    script.write_text(WORKER, "utf-8")
    started = [
        subprocess.Popen(
            [
                *(*PROGRAM, "testbed", "run", "--name", testbed.name, "--job", job),
                *("--hosts", hosts, "python", str(script), compute_s),
            ],
            stdout=subprocess.DEVNULL,
        )
        for job, (hosts, compute_s) in JOBS.items()
    ]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


def take_fabric(page: Browser, folder: Path) -> None:
    """Take the web page and `switchfold top` of two jobs over two leaves and two spines."""
    fabric = leaf_spine(
        2, 2, 2, host_rate_bits_per_s=100_000_000, uplink_rate_bits_per_s=50_000_000
    )
    with Testbed(fabric, name="screens", controller_options=("--web", "0")) as testbed:
        log = (testbed.run_directory / "controller.log").read_text("utf-8")
        found = re.search(r"the web page is at (http://\S+)", log)
        assert found is not None, log
        with running_jobs(testbed, folder):
            page.resize(*PAGE_SIZE)
            page.open(found[1])
            for job in JOBS:
                wait_until(lambda job=job: has_trees(page, job), f"no tree of {job}", LIMIT_S)
            wait_until(lambda: are_links_used(page), "no rates", LIMIT_S)
            keep(page, "web_page")
            at = ("--controller", testbed.controller_address)
            terminal(page, folder, "top", "switchfold top", switchfold("top", *at))


def are_links_used(page: Browser) -> bool:
    """Return whether the page shows a rate of each link."""
    rates = page.texts("#links tbody td:nth-child(3)")
    return bool(rates) and all("Mbit" in each for each in rates)


def has_trees(page: Browser, job: str) -> bool:
    """Return whether the page shows the trees of a job."""
    branches = "[...document.querySelectorAll('.branch')].map(each => each.dataset.job)"
    return job in page.run(f"return {branches}")


def take_schedule(page: Browser, folder: Path) -> None:
    """Take `switchfold schedule show` of workers that push updates to one server.

    Then take the report of their recorded transfers.
    """
    log, report = folder / "transfers.jsonl", folder / "transfers.html"
    star = single_switch(SCHEDULED_WORKERS + 1, rate_bits_per_s=20_000_000)
    definition = TensorDefinition(name="w", num_values=SCHEDULED_VALUES)
    update = np.ones(SCHEDULED_VALUES, np.float32)
    recording = ("--transfer-log", str(log))
    with (
        Testbed(star, name="screens", controller_options=recording) as testbed,
        FabricJob(testbed, definition) as job,
    ):
        is_over = False

        def train(fabric: FabricWorker) -> None:
            while not is_over:
                fabric.push(update).result(LIMIT_S)
                fabric.get().result(LIMIT_S)

        def is_rich() -> bool:
            report = job.report()
            return sum(each["commits"] for each in report["workers"]) > 4 * SCHEDULED_WORKERS

        with ThreadPoolExecutor(SCHEDULED_WORKERS) as pool:
            try:
                ends = [pool.submit(train, fabric) for fabric in job.workers]
                wait_until(is_rich, "few updates", LIMIT_S, interval_s=0.5)
                words = ("schedule", "show", "train")
                printed = switchfold(*words, "--controller", testbed.controller_address)
            finally:
                is_over = True
            for end in ends:
                end.result(LIMIT_S)
    terminal(page, folder, "schedule", "switchfold schedule show train", printed)
    switchfold("report", "transfers", str(log), "--out", str(report))
    page.resize(*REPORT_SIZE)
    page.open(report.as_uri())
    keep(page, "transfers", page.run("return document.querySelectorAll('h2')[1].offsetTop"))


def take_report(page: Browser, folder: Path) -> None:
    """Take the report of `switchfold demo`."""
    subprocess.run([*PROGRAM, "demo", "--report", str(folder / "report")], check=True)
    page.resize(*PAGE_SIZE)
    page.open((folder / "report" / "report.html").as_uri())
    # What was measured depends on the machine; what was proved does not.
    headings = "[...document.querySelectorAll('h2')]"
    keep(page, "report", page.run(f"return {headings}[{PROVED_SECTIONS}].offsetTop"))


SCREENS: Final[dict[str, Callable[[Browser, Path], None]]] = {
    "fabric": take_fabric,
    "schedule": take_schedule,
    "report": take_report,
}


def main() -> None:
    """Take all screens, or those that the command line names."""
    if os.geteuid() != 0 or CHROMIUM is None or DRIVER is None:
        raise SystemExit(
            "error: needs root, chromium and chromedriver"
            " (on Debian: apt-get install chromium chromium-driver)"
        )
    unknown = set(sys.argv[1:]) - SCREENS.keys()
    if unknown:
        raise SystemExit(f"error: there are {', '.join(SCREENS)}")
    with tempfile.TemporaryDirectory(prefix="screens-") as made:
        folder = Path(made)
        with browser(folder) as page:
            for name in sys.argv[1:] or SCREENS:
                SCREENS[name](page, folder)


if __name__ == "__main__":
    main()
