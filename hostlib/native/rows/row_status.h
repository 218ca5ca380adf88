// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// How calls of a table end.
#ifndef SWITCHFOLD_ROW_STATUS_H
#define SWITCHFOLD_ROW_STATUS_H

typedef enum {
  ROWS_DONE,
  ROWS_NO_MEMORY,      // no value has changed; new rows with initial values may have been made
  ROWS_FULL,           // position: the first key whose row has no room
  ROWS_NOT_FINITE,     // position: the first gradient with NaN or infinity
  ROWS_SUM_NOT_FINITE, // position: the first one of a key whose gradients have a sum beyond float32
  ROWS_LSN,            // not above the table's
  ROWS_FORMAT,         // no chunk of rows, or of another table
} row_status_t;

#endif
