# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of dense tensors whose transfers a scheduler plans, after MLfabric."""
