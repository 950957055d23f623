! Elements of an attest_tensor as doubles, whatever its type: for kernels that are simple before they are fast. What
! attest_plugin_tensor.h is for C.
module attest_tensor_elements
  use, intrinsic :: ieee_arithmetic
  use attest_plugin
  implicit none
  private
  public :: attest_view, view_of, element, put, keeps

  ! A tensor with its strides and elements; exactly one of bytes, halves, words, f and d is set. Axes that it lacks have
  ! stride 0. Indices count from 0, as in the interface.
  type :: attest_view
    logical :: there = .false., bfloat = .false.
    integer(c_int64_t) :: shape(4) = 1, strides(4) = 0
    integer(c_int8_t), pointer :: bytes(:) => null()
    integer(c_int16_t), pointer :: halves(:) => null()
    integer(c_int32_t), pointer :: words(:) => null()
    real(c_float), pointer :: f(:) => null()
    real(c_double), pointer :: d(:) => null()
  end type

  integer(c_int64_t), parameter :: low_16 = 65535, low_32 = 4294967295_c_int64_t

contains

  ! `tensor`: the address of an attest_tensor, or NULL.
  function view_of(tensor) result(one)
    type(c_ptr), intent(in) :: tensor
    type(attest_view) :: one
    type(attest_tensor), pointer :: t
    integer(c_int64_t), pointer :: list(:)
    integer(c_int64_t) :: elements
    type(c_ptr) :: first
    one%there = c_associated(tensor)
    if (.not. one%there) return
    call c_f_pointer(tensor, t)
    call c_f_pointer(t%shape, list, [t%ndim])
    one%shape(:t%ndim) = list
    call c_f_pointer(t%strides, list, [t%ndim])
    one%strides(:t%ndim) = list
    if (any(one%shape == 0)) return
    elements = 1 + sum((one%shape - 1)*one%strides)
    first = transfer(transfer(t%data, 0_c_intptr_t) + t%byte_offset, c_null_ptr)
    one%bfloat = t%code == 4
    if (t%bits == 64) then
      call c_f_pointer(first, one%d, [elements])
    else if (t%bits == 16) then
      call c_f_pointer(first, one%halves, [elements])
    else if (t%bits == 8) then
      call c_f_pointer(first, one%bytes, [elements])
    else if (t%code == 0) then
      call c_f_pointer(first, one%words, [elements])
    else
      call c_f_pointer(first, one%f, [elements])
    end if
  end function

  integer(c_int64_t) function place(t, b, h, l, d)
    type(attest_view), intent(in) :: t
    integer(c_int64_t), intent(in) :: b, h, l, d
    place = 1 + b*t%strides(1) + h*t%strides(2) + l*t%strides(3) + d*t%strides(4)
  end function

  real(c_double) function element(t, b, h, l, d)
    type(attest_view), intent(in) :: t
    integer(c_int64_t), intent(in) :: b, h, l, d
    integer(c_int64_t) :: at
    at = place(t, b, h, l, d)
    if (associated(t%f)) then
      element = real(t%f(at), c_double)
    else if (associated(t%d)) then
      element = t%d(at)
    else if (associated(t%halves)) then
      element = from_half(int(t%halves(at), c_int32_t), t%bfloat)
    else if (associated(t%words)) then
      element = real(t%words(at), c_double)
    else
      element = real(t%bytes(at), c_double)
    end if
  end function

  ! Rounded to nearest.
  subroutine put(t, b, h, l, d, x)
    type(attest_view), intent(in) :: t
    integer(c_int64_t), intent(in) :: b, h, l, d
    real(c_double), intent(in) :: x
    integer(c_int64_t) :: at
    at = place(t, b, h, l, d)
    if (associated(t%d)) then
      t%d(at) = x
    else if (associated(t%halves)) then
      t%halves(at) = to_half(x, t%bfloat)
    else
      t%f(at) = real(x, c_float)
    end if
  end subroutine

  real(c_double) function from_half(bits, bfloat) result(x)
    integer(c_int32_t), intent(in) :: bits
    logical, intent(in) :: bfloat
    integer(c_int32_t) :: exponent_bits, fraction
    if (bfloat) then ! the upper half of a float
      x = real(transfer(shiftl(bits, 16), 0.0_c_float), c_double)
      return
    end if
    exponent_bits = iand(shiftr(bits, 10), 31)
    fraction = iand(bits, 1023)
    if (exponent_bits == 0) then
      x = scale(real(fraction, c_double), -24)
    else if (exponent_bits < 31) then
      x = scale(real(1024 + fraction, c_double), exponent_bits - 25)
    else if (fraction == 0) then
      x = ieee_value(x, ieee_positive_inf)
    else
      x = ieee_value(x, ieee_quiet_nan)
    end if
    if (btest(bits, 15)) x = -x
  end function

  integer(c_int16_t) function to_half(x, bfloat)
    real(c_double), intent(in) :: x
    logical, intent(in) :: bfloat
    real(c_double) :: size
    integer(c_int32_t) :: bits
    if (bfloat) then
      bits = shiftr(transfer(real(rounded(x, 8, -126), c_float), bits), 16)
      if (ieee_is_nan(x)) bits = int(z'7fc0', c_int32_t)
    else
      size = abs(rounded(x, 11, -14))
      if (ieee_is_nan(x)) then
        bits = int(z'7e00', c_int32_t)
      else if (size > 65504) then
        bits = int(z'7c00', c_int32_t)
      else if (size < scale(1.0_c_double, -14)) then
        bits = int(scale(size, 24), c_int32_t)
      else
        bits = ior(shiftl(exponent(size) + 14, 10), iand(int(scale(size, 11 - exponent(size)), c_int32_t), 1023))
      end if
      if (sign(1.0_c_double, x) < 0) bits = ibset(bits, 15)
    end if
    if (btest(bits, 15)) bits = bits - 65536
    to_half = int(bits, c_int16_t)
  end function

  ! x with `bits` bits of significand, the smallest normal number being 2**least: to nearest, ties to even.
  real(c_double) function rounded(x, bits, least)
    real(c_double), intent(in) :: x
    integer, intent(in) :: bits, least
    integer :: last
    rounded = x
    if (x == 0 .or. .not. ieee_is_finite(x)) return
    last = max(exponent(x) - 1, least) - bits + 1
    rounded = scale(ieee_rint(scale(x, -last)), last)
  end function

  ! Whether dropout keeps the weight of query i and key j where attest_inputs%keep is NULL: word 0 of Philox4x32-10
  ! (Salmon, Moraes, Dror and Shaw, SC 2011) at counter (b, h, i, j), key = seed, is not below round(p * 2**32).
  logical function keeps(share, seed, b, h, i, j)
    real(c_double), intent(in) :: share
    integer(c_int64_t), intent(in) :: seed, b, h, i, j
    integer(c_int64_t) :: c(0:3), x(2), y(2), low, high
    integer :: round
    c = [b, h, i, j]
    low = iand(seed, low_32)
    high = shiftr(seed, 32)
    do round = 1, 10
      x = product_32(int(z'D2511F53', c_int64_t), c(0))
      y = product_32(int(z'CD9E8D57', c_int64_t), c(2))
      c = [ieor(ieor(y(1), c(1)), low), y(2), ieor(ieor(x(1), c(3)), high), x(2)]
      low = iand(low + int(z'9E3779B9', c_int64_t), low_32)
      high = iand(high + int(z'BB67AE85', c_int64_t), low_32)
    end do
    keeps = c(0) >= int(share*4294967296.0_c_double + 0.5_c_double, c_int64_t)
  end function

  ! The upper and the lower 32 bits of a product of two numbers of 32 bits: 64 bits without a sign are too wide here.
  function product_32(a, b) result(words)
    integer(c_int64_t), intent(in) :: a, b
    integer(c_int64_t) :: words(2), lower, upper
    lower = a*iand(b, low_16)
    upper = a*shiftr(b, 16) + shiftr(lower, 16)
    words = [shiftr(upper, 16), ior(shiftl(iand(upper, low_16), 16), iand(lower, low_16))]
  end function
end module
