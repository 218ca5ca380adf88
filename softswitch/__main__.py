# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entry point of `softswitch` and `python -m switchfold.softswitch`."""

import gc

from .commands.command import main as softswitch


def main() -> None:
    """Enter the command line."""
    # To load a verb makes no garbage; `collect_again` ends this.
    gc.disable()
    softswitch()


if __name__ == "__main__":
    main()
