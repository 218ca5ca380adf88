# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control plane of Switchfold: admits jobs, programs switches, serves sessions and operators."""

import os

# gRPC's C core writes its own lines to stderr; users get our one-line errors instead.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
