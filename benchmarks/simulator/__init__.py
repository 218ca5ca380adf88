# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A flow-level simulator in which the transfer scheduler meets plainer ways to train."""
