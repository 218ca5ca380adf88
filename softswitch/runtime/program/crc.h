// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// CRCs, eight bytes at a time. The caller passes the register from call to call, so that input may come in pieces.
#ifndef SOFTSWITCH_CRC_H
#define SOFTSWITCH_CRC_H

#include <stdint.h>

// Polynomials in reflected form, least significant bit first: 0xedb88320 and 0xa001.
uint32_t crc_32(uint32_t crc, const uint8_t *from, uint32_t bytes);
uint32_t crc_16(uint32_t crc, const uint8_t *from, uint32_t bytes);
// Polynomial 0x1021, most significant bit first.
uint32_t crc_ccitt(uint32_t crc, const uint8_t *from, uint32_t bytes);

#endif
