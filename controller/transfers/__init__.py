# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live transfers: stations register, and each job's transfer scheduler answers them."""
