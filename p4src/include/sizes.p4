// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sizes of tables, counters and registers; resources.md holds the budget that follows from them.
#ifndef SWITCHFOLD_SIZES_P4
#define SWITCHFOLD_SIZES_P4

const bit<32> JOB_TABLE_SIZE = 256;
const bit<32> WORKER_TABLE_SIZE = 4096;
const bit<32> WORKER_ADDRESS_TABLE_SIZE = 4096;
const bit<32> HOT_ROW_TABLE_SIZE = 2048;
const bit<32> IPV4_FORWARD_TABLE_SIZE = 1024;
const bit<32> OUTCOME_TABLE_SIZE = 16384;
const bit<32> PORT_COUNTER_SIZE = 512;
const bit<32> OUTCOME_COUNTER_SIZE = 64;
const bit<32> ORDINARY_COUNTER_SIZE = 8;
const bit<32> SLOT_REGISTER_SIZE = NUM_SLOTS * SLOT_COPIES;

#endif
