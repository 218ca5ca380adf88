// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#ifndef SWITCHFOLD_REFUSAL_H
#define SWITCHFOLD_REFUSAL_H

// Why a datagram brought nothing that was awaited.
typedef enum {
  REFUSED_VERSION,
  REFUSED_OPERATION,
  REFUSED_FOREIGN_JOB,
  REFUSED_GENERATION,
  REFUSED_SLOT,
  REFUSED_MISMATCH,       // the awaited round with another tensor or range
  REFUSED_DUPLICATE,      // a result, or a chunk of a block, that has come before
  REFUSED_NOTICE,         // a notice, which is counted too
  REFUSED_FOREIGN_WORKER, // a multicast that no other member has sent
  REFUSALS,
} refusal_t;

#endif
