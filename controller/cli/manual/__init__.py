# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and shell completion of `switchfold` and `softswitch`."""
