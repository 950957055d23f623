// Numbers of 256 bits: as much of MPFR as the audit needs.
#pragma once

#include <mpfr.h>

#include <utility>

namespace attest::audit {

class Big {
 public:
  Big() { mpfr_init2(value_, kBits), mpfr_set_zero(value_, 1); }
  Big(double x) : Big() { mpfr_set_d(value_, x, MPFR_RNDN); }  // exact; implicit, so that formulas read as such
  Big(const Big& other) : Big() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Big& operator=(const Big& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Big() { mpfr_clear(value_); }

  friend Big operator+(const Big& a, const Big& b) { return made(mpfr_add, a, b); }
  friend Big operator-(const Big& a, const Big& b) { return made(mpfr_sub, a, b); }
  friend Big operator*(const Big& a, const Big& b) { return made(mpfr_mul, a, b); }
  friend Big operator/(const Big& a, const Big& b) { return made(mpfr_div, a, b); }
  friend Big exp(const Big& a) { return made(mpfr_exp, a); }
  friend Big log(const Big& a) { return made(mpfr_log, a); }
  friend Big tanh(const Big& a) { return made(mpfr_tanh, a); }
  friend Big sqrt(const Big& a) { return made(mpfr_sqrt, a); }
  friend Big abs(const Big& a) { return made(mpfr_abs, a); }
  friend bool operator<(const Big& a, const Big& b) { return mpfr_less_p(a.value_, b.value_) != 0; }
  Big& operator+=(const Big& b) { return *this = *this + b; }
  double number() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  static constexpr mpfr_prec_t kBits = 256;
  template <class Function>
  static Big made(Function function, const Big& a, const Big& b) {
    Big result;
    function(result.value_, a.value_, b.value_, MPFR_RNDN);
    return result;
  }
  template <class Function>
  static Big made(Function function, const Big& a) {
    Big result;
    function(result.value_, a.value_, MPFR_RNDN);
    return result;
  }
  mpfr_t value_;
};

}  // namespace attest::audit
