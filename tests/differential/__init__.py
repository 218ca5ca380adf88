# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The differential fuzzer: the same program, entries and packets on softswitch and on BMv2."""
