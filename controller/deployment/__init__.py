# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From a list of hosts to a controller's file, certificates and systemd units."""
