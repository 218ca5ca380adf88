# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4 programs and entries: `switchfold p4`, `switchfold switch entries`."""
