# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m switchfold.hostlib.parameter_server.resharding`: as `switchfold ps reshard`."""

import sys

from .command import run

sys.exit(run(sys.argv[1:]))
