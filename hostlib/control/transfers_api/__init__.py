# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Transfer API of stations and the scheduler: transfers.proto and the code generated from it."""
