# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control plane of Switchfold: admits jobs, programs switches, serves sessions and operators."""
