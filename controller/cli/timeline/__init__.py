# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What `switchfold report transfers` makes of a controller's timeline of transfers."""
