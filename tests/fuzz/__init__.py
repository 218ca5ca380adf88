# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of datagrams: the host library's C code behind a network that damages packets."""
