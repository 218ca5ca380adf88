# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Garbage collection, which the command's process does without while it loads modules."""

import gc


def collect_again() -> None:
    """Collect garbage from now on, except in what is loaded by now: that stays to the end.

    A caller of the commands in its own process has never stopped the collection: nothing is done.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
