# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs: their members from the first JoinRequest to the end, and what is known of lost ones."""
