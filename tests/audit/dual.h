// Dual numbers of 256 bits: a value and its derivative. No difference is taken, so that no size of an input loses bits.
#pragma once

#include "tests/audit/big_float.h"

namespace attest::audit {

struct Dual {
  Big value, slope;

  Dual() = default;
  Dual(double x) : value(x) {}  // implicit, so that formulas read as such
  Dual(const Big& x) : value(x) {}
  Dual(const Big& x, const Big& by) : value(x), slope(by) {}

  friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const Big ratio = a.value / b.value;
    return {ratio, (a.slope - ratio * b.slope) / b.value};
  }
  friend Dual exp(const Dual& a) {
    const Big e = exp(a.value);
    return {e, e * a.slope};
  }
  friend Dual log(const Dual& a) { return {log(a.value), a.slope / a.value}; }
  friend Dual tanh(const Dual& a) {
    const Big t = tanh(a.value);
    return {t, (Big(1) - t * t) * a.slope};
  }
  friend bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  Dual& operator+=(const Dual& b) { return *this = *this + b; }
};

}  // namespace attest::audit
