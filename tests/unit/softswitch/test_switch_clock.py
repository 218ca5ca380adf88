# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks of cores may differ slightly: a timer may fire before its time by this core's clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from first_byte import compile_first_byte
from switchfold.softswitch.compilation.compiler import find_compiler

LAGGING_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, now);
  if (clock != CLOCK_MONOTONIC) return done;
  now->tv_nsec -= 300000;
  if (now->tv_nsec < 0) {
    now->tv_sec--;
    now->tv_nsec += 1000000000;
  }
  return done;
}
"""
COUNT = """
import sys
from pathlib import Path
import numpy as np
from switchfold.softswitch.switch.impairments import Impairments
from switchfold.softswitch.switch.switch import Switch
from first_byte import HandWrittenProgram

with Switch(HandWrittenProgram(Path(sys.argv[1]))) as switch:
    for number in (1, 2):
        switch.ports.add(number, "mem")
    switch.ports.set_impairments(2, Impairments(rate_bits_per_s=5e6), direction="out")
    switch.start()
    frames = np.zeros((20, 1250), np.uint8)
    frames[:, 0], frames[:, 1] = 4, 2
    lengths = np.full(20, 1250, np.int32)
    assert switch.ports.mem_port(1).send(frames, lengths) == 20
    received = 0
    while received < 20:
        count = switch.ports.mem_port(2).receive(frames, lengths, 60.0)
        assert count, f"{received} of 20 came out"
        received += count
"""


def test_queued_packets_leave_though_the_timer_seems_early(tmp_path: Path) -> None:
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(LAGGING_CLOCK, encoding="ascii")
    flags = ["-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*find_compiler(), *flags, str(source), "-ldl"], check=True)
    program = compile_first_byte(tmp_path)
    support = Path(__file__).parents[2] / "support"
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(program.library)],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(support)},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
