# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold calibrate`: wrong use is refused, and what was measured is kept and printed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from switchfold.bmv2_topos import Topology
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.controller.__main__ import run
from switchfold.controller.cli.calibrate import command, rig
from switchfold.controller.cli.calibrate.components import measure_components
from switchfold.controller.cli.calibrate.errors import CalibrationRunError
from switchfold.controller.cli.calibrate.processor_time import process_s
from switchfold.controller.cli.calibrate.rig import CalibrationPlan
from switchfold.controller.cli.calibrate.sums import check_sum, contribution
from switchfold.controller.cli.schemes.hardware_options import default_calibration
from switchfold.hostlib.schemes.calibration_file import MeasuredFigure, load_calibration
from switchfold.hostlib.schemes.wire_cost import ina_frames

PLAN = CalibrationPlan(workers=4, num_bytes=8_000_000, repeats=2, links="loopback")
FIGURE = MeasuredFigure.of([1e-6, 2e-6, 4e-6])


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SWITCHFOLD_CALIBRATION", raising=False)
    monkeypatch.setenv("COLUMNS", "160")  # no cell wraps
    monkeypatch.setattr(command, "busy_share", lambda _: 0.5)
    monkeypatch.setattr(
        command,
        "measure_components",
        lambda _: {"datagram_s": FIGURE, "quantized_value_s": MeasuredFigure.of([1e-9])},
    )
    monkeypatch.setattr(
        command, "measure_ring", lambda _: {"tcp_byte_s": FIGURE, "ring_step_s": FIGURE}
    )
    monkeypatch.setattr(
        command,
        "measure_switch",
        lambda _: {
            "worker_chunk_s": FIGURE,
            "switch_packet_s": FIGURE,
            "switch_round_s": FIGURE,
        },
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--workers", "1"], 2, "--workers"),
        (["--repeats", "1"], 2, "--repeats"),
        (["--megabytes", "0"], 2, "--megabytes"),
        (["--links", "fast"], 2, "'fast' is not one of 'veth'"),
        (["--calibration", "file/x.json"], 1, "cannot write file/x.json"),
        (["--calibration", "."], 2, "is a directory"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wrong_use_is_refused(
    words: list[str],
    status: int,
    said: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert run(["calibrate", *words]) == status
    assert said in " ".join(capsys.readouterr().err.split())


def test_namespaces_need_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command.os, "geteuid", lambda: 1000)
    assert run(["calibrate", "--links", "veth"]) == 1
    assert "--links veth needs root" in capsys.readouterr().err
    assert run(["calibrate"]) == 0
    assert load_calibration(default_calibration()).links.startswith("loopback, 4 workers")


def test_figures_are_kept_and_printed_with_their_spread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", "--links", "loopback"]) == 0
    said = capsys.readouterr()
    text = " ".join(said.out.split())
    assert "500,000 packets/s" in text
    assert "kept in " in text
    assert "other work kept 50 % of the cores busy" in said.err
    kept = load_calibration(default_calibration())
    assert kept.figures["worker_chunk_s"] == FIGURE
    assert kept.switch is not None
    other = tmp_path / "other.json"
    assert run(["calibrate", "--links", "loopback", "--json", "--calibration", str(other)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(other.read_text())


def test_without_a_switch_a_chunk_is_its_datagram_and_its_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: CalibrationPlan) -> None:
        pytest.fail("a switch was started")

    monkeypatch.setattr(command, "measure_switch", fail)
    assert run(["calibrate", "--links", "loopback", "--no-switch"]) == 0
    assert "a lower bound" in capsys.readouterr().out
    kept = load_calibration(default_calibration())
    assert kept.switch is None
    assert kept.figures["worker_chunk_s"].median == pytest.approx(2e-6 + 352 * 1e-9)


def test_a_switch_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise TestbedError("no C compiler")

    monkeypatch.setattr(rig, "Testbed", missing)
    with pytest.raises(CalibrationRunError, match="no C compiler\nTo measure the hosts alone"):
        rig.measure_switch(PLAN)
    with pytest.raises(CalibrationRunError, match="TCP among hosts cannot be measured: no C"):
        rig.measure_ring(PLAN)


def test_times_of_workers_become_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = ina_frames(2_000_000, 352)
    small_s = [1e-3 * each for each in range(1, 102)]
    workers = [
        {
            "worker_s": [frames * factor * 1e-6, frames * factor * 3e-6],
            "switch_s": [frames * 8e-6, frames * 12e-6],
            "seconds": [factor * 1.0, factor * 2.0],
            "small_s": small_s,
        }
        for factor in (1, 2, 3, 4)
    ]

    class NoTestbed:
        run_directory = Path()
        switch = type("Switch", (), {"name": "s1"})
        topology = type("Topology", (), {"hosts": ()})

        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> NoTestbed:
            return self

        def __exit__(self, *_: object) -> None: ...

    process = type("Process", (), {"name": "s1", "pid": 1})
    monkeypatch.setattr(rig, "Testbed", NoTestbed)
    monkeypatch.setattr(rig, "read_records", lambda _: [process])
    monkeypatch.setattr(rig, "_run", lambda *_: workers)
    monkeypatch.setattr(rig.os, "cpu_count", lambda: 2)
    found = rig.measure_switch(PLAN)
    assert found["worker_chunk_s"].least == pytest.approx(2.5e-6)
    assert found["worker_chunk_s"].most == pytest.approx(7.5e-6)
    assert found["switch_packet_s"].median == pytest.approx(2.5e-6)
    assert found["shared_chunk_s"].least == pytest.approx(2 * 2.5 / (4 * frames))
    assert found["switch_round_s"].median == pytest.approx(51e-3 / 2)
    assert found["switch_round_s"].least == pytest.approx(11e-3 / 2)
    monkeypatch.setattr(rig.os, "cpu_count", lambda: 5)
    assert "shared_chunk_s" not in rig.measure_switch(PLAN)
    assert "shared_tcp_byte_s" not in rig.measure_ring(PLAN)
    monkeypatch.setattr(rig.os, "cpu_count", lambda: 4)
    ring = rig.measure_ring(PLAN)
    assert ring["shared_tcp_byte_s"].most == pytest.approx(4 * 5.0 / (4 * 12_000_000))
    assert ring["tcp_byte_s"].least == pytest.approx(frames * 2.5e-6 / 12_000_000)
    assert ring["ring_step_s"].median == pytest.approx(51e-3 / 6)


def test_one_core_moves_datagrams_and_quantises() -> None:
    found = measure_components(2)
    assert set(found) == {"datagram_s", "quantized_value_s"}
    assert all(figure.count == 2 for figure in found.values())


def test_wrong_sums_are_found() -> None:
    total = sum(contribution(worker_id, 2000) for worker_id in range(3))
    check_sum(np.asarray(total, np.float32), 3)
    with pytest.raises(AssertionError):
        check_sum(np.asarray(total, np.float32), 4)


def test_processor_time_counts_threads_that_ended() -> None:
    def work() -> None:
        while time.thread_time() < 0.02:
            pass

    before_s = time.process_time()
    began_s = process_s(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    ended_s = process_s(os.getpid())
    assert before_s <= began_s <= ended_s - 0.02
    assert ended_s <= time.process_time()


def test_processor_time_of_a_process_that_is_gone_is_an_error() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        with pytest.raises(OSError, match="Invalid argument"):
            process_s(ended.pid)


@pytest.mark.parametrize("links", rig.LINKS)
@pytest.mark.parametrize("has_switch", [True, False])
def test_no_link_of_the_measurement_has_a_rate(
    links: rig.Links, has_switch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sums take of all cores is their whole time, so they must not wait for a link."""
    made: list[Topology] = []
    monkeypatch.setattr(rig, "Testbed", lambda topology, **_: made.append(topology))
    rig._testbed(replace(PLAN, links=links), has_switch=has_switch)
    (topology,) = made
    assert [link.rate_bits_per_s for link in topology.links] == [None] * PLAN.workers
