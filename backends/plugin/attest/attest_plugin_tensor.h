/* Elements of an attest_tensor as doubles, whatever its type: for kernels that are simple before they are fast. */
#ifndef ATTEST_PLUGIN_TENSOR_H
#define ATTEST_PLUGIN_TENSOR_H

#include <math.h>
#include <string.h>

#include "attest_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where element (b, h, l, d) lies, in elements. `starts` is query_starts or key_starts of attest_tensors: NULL, or
 * the first row of each packed sequence. */
static inline int64_t attest_at(const attest_tensor* t, const int64_t* starts, int64_t b, int64_t h, int64_t l,
                                int64_t d) {
  const int64_t first = starts ? starts[b] * t->strides[2] : b * t->strides[0];
  return first + h * t->strides[1] + l * t->strides[2] + d * t->strides[3];
}

/* x with `bits` bits of significand, its last bit not below 2^(min_exponent - bits + 1): to nearest, ties to even. */
static inline double attest_rounded(double x, int bits, int min_exponent) {
  if (x == 0 || !isfinite(x)) return x;
  const int exponent = ilogb(x) > min_exponent ? ilogb(x) : min_exponent;
  return ldexp(nearbyint(ldexp(x, bits - 1 - exponent)), exponent - bits + 1);
}

static inline double attest_from_f16(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double size = exponent == 0    ? ldexp(fraction, -24)
                      : exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                       : ldexp(1024 + fraction, exponent - 25);
  return h >> 15 ? -size : size;
}

static inline uint16_t attest_to_f16(double x) {
  const uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
  if (isnan(x)) return (uint16_t)(sign | 0x7e00);
  const double size = fabs(attest_rounded(x, 11, -14));
  if (size > 65504) return (uint16_t)(sign | 0x7c00);
  if (size < ldexp(1, -14)) return (uint16_t)(sign | (uint16_t)ldexp(size, 24));
  const int exponent = ilogb(size);
  return (uint16_t)(sign | ((exponent + 15) << 10) | ((int)ldexp(size, 10 - exponent) & 1023));
}

/* e4m3 with 3 bits of mantissa, or e5m2 with 2. */
static inline double attest_from_f8(uint8_t code, int mantissa) {
  const int largest = (1 << (7 - mantissa)) - 1, exponent = (code & 127) >> mantissa;
  const int fraction = code & ((1 << mantissa) - 1), bias = largest / 2;
  double size = ldexp((exponent ? 1 << mantissa : 0) + fraction, (exponent ? exponent : 1) - bias - mantissa);
  if (mantissa == 3 && (code & 127) == 127) size = (double)NAN;
  if (mantissa == 2 && exponent == largest) size = fraction ? (double)NAN : (double)INFINITY;
  return code >> 7 ? -size : size;
}

/* Two of 4 bits lie in a byte. */
static inline double attest_from_4_bits(const uint8_t* pairs, int64_t at, int is_integer) {
  static const double sizes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const int code = pairs[at / 2] >> (at % 2 ? 4 : 0) & 15;
  if (is_integer) return code < 8 ? code : code - 16;
  return code < 8 ? sizes[code] : -sizes[code - 8];
}

static inline double attest_load(const attest_tensor* t, int64_t at) {
  const char* data = (const char*)t->data + t->byte_offset;
  if (t->dtype.bits == 4) return attest_from_4_bits((const uint8_t*)data, at, t->dtype.code == ATTEST_CODE_INT);
  if (t->dtype.code == ATTEST_CODE_E8M0) {
    const int code = ((const uint8_t*)data)[at];
    return code == 255 ? (double)NAN : ldexp(1, code - 127);
  }
  if (t->dtype.code == ATTEST_CODE_E4M3) return attest_from_f8(((const uint8_t*)data)[at], 3);
  if (t->dtype.code == ATTEST_CODE_E5M2) return attest_from_f8(((const uint8_t*)data)[at], 2);
  if (t->dtype.code == ATTEST_CODE_INT && t->dtype.bits == 8) return ((const int8_t*)data)[at];
  if (t->dtype.code == ATTEST_CODE_FLOAT && t->dtype.bits == 64) return ((const double*)(const void*)data)[at];
  if (t->dtype.code == ATTEST_CODE_FLOAT && t->dtype.bits == 32) return ((const float*)(const void*)data)[at];
  if (t->dtype.code == ATTEST_CODE_FLOAT) return attest_from_f16(((const uint16_t*)(const void*)data)[at]);
  if (t->dtype.code == ATTEST_CODE_UINT) return ((const uint8_t*)data)[at];
  if (t->dtype.code == ATTEST_CODE_INT) return ((const int32_t*)(const void*)data)[at];
  const uint32_t word = (uint32_t)((const uint16_t*)(const void*)data)[at] << 16; /* bfloat16: half of a float */
  float number;
  memcpy(&number, &word, sizeof number);
  return number;
}

/* Rounded to nearest. */
static inline void attest_store(const attest_tensor* t, int64_t at, double x) {
  char* data = (char*)t->data + t->byte_offset;
  if (t->dtype.code == ATTEST_CODE_FLOAT && t->dtype.bits == 64) {
    ((double*)(void*)data)[at] = x;
  } else if (t->dtype.code == ATTEST_CODE_FLOAT && t->dtype.bits == 32) {
    ((float*)(void*)data)[at] = (float)x;
  } else if (t->dtype.code == ATTEST_CODE_FLOAT) {
    ((uint16_t*)(void*)data)[at] = attest_to_f16(x);
  } else {
    const float number = (float)attest_rounded(x, 8, -126); /* exact, or beyond the largest and infinite */
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    ((uint16_t*)(void*)data)[at] = (uint16_t)(isnan(x) ? 0x7fc0 : word >> 16);
  }
}

/* Whether dropout keeps the weight of query i and key j where there is no input "keep": word 0 of Philox4x32-10
 * (Salmon, Moraes, Dror and Shaw, SC 2011) at counter (b, h, i, j), key = seed, is not below round(p * 2^32). */
static inline int attest_keeps(const attest_call* call, int64_t b, int64_t h, int64_t i, int64_t j) {
  uint32_t c[4] = {(uint32_t)b, (uint32_t)h, (uint32_t)i, (uint32_t)j};
  uint32_t low = (uint32_t)call->dropout_seed, high = (uint32_t)(call->dropout_seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t x = UINT64_C(0xD2511F53) * c[0], y = UINT64_C(0xCD9E8D57) * c[2];
    c[0] = (uint32_t)(y >> 32) ^ c[1] ^ low;
    c[1] = (uint32_t)y;
    c[2] = (uint32_t)(x >> 32) ^ c[3] ^ high;
    c[3] = (uint32_t)x;
    low += UINT32_C(0x9E3779B9);
    high += UINT32_C(0xBB67AE85);
  }
  return c[0] >= (uint64_t)(call->dropout * 4294967296.0 + 0.5);
}

#ifdef __cplusplus
}
#endif
#endif
