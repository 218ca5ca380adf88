# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A development authority that makes certificates, and checks of certificates in gRPC calls."""
