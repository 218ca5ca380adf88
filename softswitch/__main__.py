# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entry point of `softswitch` and `python -m switchfold.softswitch`."""

from .commands.command import main

if __name__ == "__main__":
    main()
