// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "quantization.h"

#include <math.h>
#include <string.h>

// Where the loader can choose, the wide registers of newer processors are used. It chooses before the thread sanitizer
// is ready.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORISED
#endif

// Adding and subtracting 2^23 (2^52) rounds to even what is smaller; what is not is whole already. Quantised numbers may be
// up to 2^30.
static inline float round_float(float number) {
  float rounded = (fabsf(number) + 0x1p23f) - 0x1p23f;
  return fabsf(number) < 0x1p23f ? copysignf(rounded, number) : number;
}

static inline double round_double(double number) { return copysign((fabs(number) + 0x1p52) - 0x1p52, number); }

static inline void put(uint8_t *values, uint32_t i, int32_t value) {
  uint32_t word = __builtin_bswap32((uint32_t)value);
  memcpy(values + 4 * (size_t)i, &word, sizeof word);
}

static inline int32_t get(const uint8_t *values, uint32_t i) {
  uint32_t word;
  memcpy(&word, values + 4 * (size_t)i, sizeof word);
  return (int32_t)__builtin_bswap32(word);
}

static inline float half_to_float(uint16_t half) {
  // The exponent field moves to its place and is rebiased by a product, which also makes denormals ordinary.
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
  float number;
  if ((half & 0x7c00) == 0x7c00) magnitude |= 0x70000000; // infinity and NaN: stays so by the product
  memcpy(&number, &magnitude, sizeof number);
  number *= 0x1p112f;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits |= sign;
  memcpy(&number, &bits, sizeof number);
  return number;
}

// Round to nearest, ties to even; beyond the range: infinity.
static inline uint16_t float_to_half(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00); // NaN
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); // 65520 and more
  if (magnitude < 0x38800000) { // denormal: adding 0.5 shifts the rounding to the last of its bits
    float positive;
    memcpy(&positive, &magnitude, sizeof positive);
    positive += 0.5f;
    memcpy(&bits, &positive, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  magnitude += 0xc8000fff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | magnitude >> 13);
}

VECTORISED void int32_to_wire(const int32_t *restrict numbers, uint8_t *restrict values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put(values, i, numbers[i]);
}

VECTORISED void float16_to_wire(const uint16_t *restrict numbers, float scale, uint8_t *restrict values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put(values, i, (int32_t)round_float(half_to_float(numbers[i]) * scale));
}

VECTORISED void float32_to_wire(const float *restrict numbers, float scale, uint8_t *restrict values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put(values, i, (int32_t)round_float(numbers[i] * scale));
}

VECTORISED void float64_to_wire(const double *restrict numbers, double scale, uint8_t *restrict values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) put(values, i, (int32_t)round_double(numbers[i] * scale));
}

VECTORISED void int32_from_wire(const uint8_t *restrict values, int32_t *restrict numbers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = get(values, i);
}

VECTORISED void float16_from_wire(const uint8_t *restrict values, float divisor, float scale, uint16_t *restrict numbers,
                                  uint32_t count) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = float_to_half((float)get(values, i) / divisor * scale);
}

VECTORISED void float32_from_wire(const uint8_t *restrict values, float divisor, float scale, float *restrict numbers,
                                  uint32_t count) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = (float)get(values, i) / divisor * scale;
}

VECTORISED void float64_from_wire(const uint8_t *restrict values, double divisor, double scale, double *restrict numbers,
                                  uint32_t count) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = (double)get(values, i) / divisor * scale;
}
