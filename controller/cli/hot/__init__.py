# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of workers and parameter servers with sparse tables on a testbed, measured and verified."""
