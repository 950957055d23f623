! example_fortran: softmax attention in float32 and float64, with heads in groups, scale, causal, windows, prefixes,
! lengths, masks, softcap and logsumexp, as a plug-in in Fortran 2008. Sums are double.
!
!   gfortran -O2 -fPIC -shared attest_plugin.f90 example_fortran.f90 -o libexample_fortran.so
module example_fortran
  use attest_plugin
  implicit none
  private
  public :: entry

  integer, parameter :: mine(*) = [has_f64, has_f32, has_attention, has_batch, has_heads, has_grouped_heads, &
                                   has_other_key_length, has_other_value_dim, has_empty, has_scale, has_causal, &
                                   has_bottom_right, has_window, has_prefix, has_lengths, has_query_lengths, &
                                   has_boolean_mask, has_additive_mask, has_softcap, has_lse, has_strides]
  character(kind=c_char), target :: name(16) = [character(1) :: 'e', 'x', 'a', 'm', 'p', 'l', 'e', '_', 'f', 'o', 'r', 't', &
                                                'r', 'a', 'n', c_null_char]
  character(kind=c_char, len=22), target :: library = 'plain Fortran loops'//c_null_char
  character(kind=c_char, len=16), target :: device = 'CPU, 1 thread'//c_null_char
  character(kind=c_char, len=4), target :: f64_name = 'f64'//c_null_char
  type(attest_backend), target :: backend
  type(attest_plugin_table), target :: table
  type(c_ptr), target :: backends(1)

  ! A tensor with its strides and elements; exactly one of bytes, f and d is set.
  type :: view
    integer(c_int64_t), pointer :: strides(:) => null()
    integer(c_int8_t), pointer :: bytes(:) => null()
    real(c_float), pointer :: f(:) => null()
    real(c_double), pointer :: d(:) => null()
  end type

  type :: plan
    type(attest_call), pointer :: call => null()
    integer(c_int64_t), pointer :: query_lengths(:) => null(), key_lengths(:) => null()
    type(view) :: q, k, v, mask
    real(c_double), allocatable :: out(:, :, :, :), lse(:, :, :), scores(:)
  end type

contains

  function view_of(tensor) result(one)
    type(c_ptr), intent(in) :: tensor
    type(view) :: one
    type(attest_tensor), pointer :: t
    integer(c_int64_t), pointer :: shape(:)
    integer(c_int64_t) :: elements
    call c_f_pointer(tensor, t)
    call c_f_pointer(t%shape, shape, [4])
    call c_f_pointer(t%strides, one%strides, [4])
    if (any(shape == 0)) return
    elements = 1 + sum((shape - 1)*one%strides)
    if (t%bits == 64) then
      call c_f_pointer(t%data, one%d, [elements])
    else if (t%bits == 8) then
      call c_f_pointer(t%data, one%bytes, [elements])
    else
      call c_f_pointer(t%data, one%f, [elements])
    end if
  end function

  ! Indices count from 0, as in the interface.
  real(c_double) function element(t, b, h, l, d)
    type(view), intent(in) :: t
    integer(c_int64_t), intent(in) :: b, h, l, d
    integer(c_int64_t) :: at
    at = 1 + b*t%strides(1) + h*t%strides(2) + l*t%strides(3) + d*t%strides(4)
    if (associated(t%d)) then
      element = t%d(at)
    else if (associated(t%bytes)) then
      element = real(t%bytes(at), c_double)
    else
      element = real(t%f(at), c_double)
    end if
  end function

  subroutine put(t, b, h, l, d, x)
    type(view), intent(in) :: t
    integer(c_int64_t), intent(in) :: b, h, l, d
    real(c_double), intent(in) :: x
    integer(c_int64_t) :: at
    at = 1 + b*t%strides(1) + h*t%strides(2) + l*t%strides(3) + d*t%strides(4)
    if (associated(t%d)) then
      t%d(at) = x
    else
      t%f(at) = real(x, c_float)
    end if
  end subroutine

  integer(c_int64_t) function count_of(lengths, b, all)
    integer(c_int64_t), pointer, intent(in) :: lengths(:)
    integer(c_int64_t), intent(in) :: b, all
    count_of = all
    if (associated(lengths)) count_of = lengths(b + 1)
  end function

  logical function sees(p, b, h, i, j)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, h, i, j
    integer(c_int64_t) :: diagonal, queries, keys
    queries = count_of(p%query_lengths, b, p%call%query_length)
    keys = count_of(p%key_lengths, b, p%call%key_length)
    diagonal = i
    if (p%call%align == attest_bottom_right) diagonal = i + keys - queries
    sees = i < queries .and. j < keys
    if (p%call%mask_kind == attest_boolean_mask) then
      if (element(p%mask, b, h, i, j) == 0) sees = .false.
    else if (p%call%mask_kind == attest_additive_mask) then
      if (element(p%mask, b, h, i, j) < -huge(1.0_c_double)) sees = .false.
    end if
    if (j < p%call%prefix) return
    if (p%call%causal /= 0 .and. j > diagonal) sees = .false.
    if (p%call%window_left /= attest_unbounded .and. j < diagonal - p%call%window_left) sees = .false.
    if (p%call%window_right /= attest_unbounded .and. j - diagonal > p%call%window_right) sees = .false.
  end function

  subroutine attend(p, b, h, i)
    use, intrinsic :: ieee_arithmetic
    type(plan), intent(inout) :: p
    integer(c_int64_t), intent(in) :: b, h, i
    integer(c_int64_t) :: j, d, g
    real(c_double) :: s, largest, total, weight
    logical :: any_seen
    g = h/(p%call%query_heads/p%call%key_heads)
    any_seen = .false.
    largest = ieee_value(largest, ieee_negative_inf)
    p%out(:, i + 1, h + 1, b + 1) = 0
    do j = 0, p%call%key_length - 1
      if (.not. sees(p, b, h, i, j)) cycle
      s = 0
      do d = 0, p%call%key_dim - 1
        s = s + element(p%q, b, h, i, d)*element(p%k, b, g, j, d)
      end do
      s = s*p%call%scale
      if (p%call%softcap > 0) s = p%call%softcap*tanh(s/p%call%softcap)
      if (p%call%mask_kind == attest_additive_mask) s = s + element(p%mask, b, h, i, j)
      p%scores(j + 1) = s
      if (.not. any_seen .or. s > largest) largest = s
      any_seen = .true.
    end do
    p%lse(i + 1, h + 1, b + 1) = largest
    if (.not. any_seen) return
    total = 0
    do j = 0, p%call%key_length - 1
      if (.not. sees(p, b, h, i, j)) cycle
      weight = exp(p%scores(j + 1) - largest)
      total = total + weight
      do d = 0, p%call%value_dim - 1
        p%out(d + 1, i + 1, h + 1, b + 1) = p%out(d + 1, i + 1, h + 1, b + 1) + weight*element(p%v, b, g, j, d)
      end do
    end do
    p%out(:, i + 1, h + 1, b + 1) = p%out(:, i + 1, h + 1, b + 1)/total
    p%lse(i + 1, h + 1, b + 1) = largest + log(total)
  end subroutine

  ! ---- the interface

  integer(c_int) function identity(instance, to, message) bind(c, name='')
    type(c_ptr), value :: instance, message
    type(attest_identity), intent(inout) :: to
    to%contract = 2
    to%library = c_loc(library)
    to%device = c_loc(device)
    identity = attest_ok
  end function

  integer(c_int) function refuse(instance, call, reason) bind(c, name='')
    type(c_ptr), value :: instance
    type(attest_call), intent(in) :: call
    type(attest_text), intent(in) :: reason
    integer(c_int64_t) :: others
    integer :: n
    others = call%features
    do n = 1, size(mine)
      others = ibclr(others, mine(n))
    end do
    refuse = attest_ok
    if (others == 0) return
    call attest_say(reason, &
                    'scale, causal, windows, prefixes, lengths, masks, softcap and lse in float32 and float64: no more so far')
    refuse = attest_refused
  end function

  integer(c_int) function arithmetic(instance, call, to, message) bind(c, name='')
    type(c_ptr), value :: instance, message
    type(attest_call), intent(in) :: call
    type(attest_arithmetic), intent(inout) :: to
    to%accumulator = attest_f64
    to%stored_weights = attest_f64
    to%stored_scores = attest_f64
    to%exp_ulps = 1
    to%log_ulps = 1
    to%tanh_ulps = 2
    arithmetic = attest_ok
  end function

  integer(c_int) function conventions(instance, to, message) bind(c, name='')
    type(c_ptr), value :: instance, message
    type(attest_conventions), intent(inout) :: to
    to%fields(10) = c_loc(f64_name) ! accumulation_f32
    conventions = attest_ok
  end function

  integer(c_int) function prepare(instance, call, made, message) bind(c, name='')
    type(c_ptr), value :: instance
    type(attest_call), target, intent(in) :: call
    type(c_ptr), intent(out) :: made
    type(attest_text), intent(in) :: message
    type(plan), pointer :: p
    integer :: status
    allocate (p)
    p%call => call
    if (c_associated(call%query_lengths)) call c_f_pointer(call%query_lengths, p%query_lengths, [call%batch])
    if (c_associated(call%key_lengths)) call c_f_pointer(call%key_lengths, p%key_lengths, [call%batch])
    allocate (p%out(call%value_dim, call%query_length, call%query_heads, call%batch), &
              p%lse(call%query_length, call%query_heads, call%batch), p%scores(call%key_length), stat=status)
    prepare = attest_ok
    made = c_loc(p)
    if (status == 0) return
    deallocate (p)
    call attest_say(message, 'no memory for the results')
    prepare = attest_failed
  end function

  subroutine drop(pointer) bind(c, name='')
    type(c_ptr), value :: pointer
    type(plan), pointer :: p
    call c_f_pointer(pointer, p)
    deallocate (p)
  end subroutine

  integer(c_int) function upload(pointer, inputs, message) bind(c, name='')
    type(c_ptr), value :: pointer, message
    type(attest_inputs), intent(in) :: inputs
    type(plan), pointer :: p
    call c_f_pointer(pointer, p)
    p%q = view_of(inputs%q)
    p%k = view_of(inputs%k)
    p%v = view_of(inputs%v)
    if (c_associated(inputs%mask)) p%mask = view_of(inputs%mask)
    upload = attest_ok
  end function

  integer(c_int) function run(pointer, message) bind(c, name='')
    type(c_ptr), value :: pointer, message
    type(plan), pointer :: p
    integer(c_int64_t) :: b, h, i
    call c_f_pointer(pointer, p)
    do b = 0, p%call%batch - 1
      do h = 0, p%call%query_heads - 1
        do i = 0, p%call%query_length - 1
          call attend(p, b, h, i)
        end do
      end do
    end do
    run = attest_ok
  end function

  integer(c_int) function download(pointer, outputs, message) bind(c, name='')
    type(c_ptr), value :: pointer, message
    type(attest_outputs), intent(in) :: outputs
    type(plan), pointer :: p
    type(view) :: out, lse
    integer(c_int64_t) :: b, h, i, d
    call c_f_pointer(pointer, p)
    out = view_of(outputs%out)
    if (c_associated(outputs%lse)) lse = view_of(outputs%lse)
    do b = 0, p%call%batch - 1
      do h = 0, p%call%query_heads - 1
        do i = 0, p%call%query_length - 1
          do d = 0, p%call%value_dim - 1
            call put(out, b, h, i, d, p%out(d + 1, i + 1, h + 1, b + 1))
          end do
          if (c_associated(outputs%lse)) call put(lse, b, h, i, 0_c_int64_t, p%lse(i + 1, h + 1, b + 1))
        end do
      end do
    end do
    download = attest_ok
  end function

  type(c_ptr) function entry(host_abi) bind(c, name='attest_plugin_entry')
    integer(c_int32_t), value :: host_abi
    entry = c_null_ptr
    if (host_abi /= attest_abi) return
    backend%size = c_sizeof(backend)
    backend%name = c_loc(name)
    backend%user = c_null_ptr
    backend%create = c_null_funptr
    backend%destroy = c_null_funptr
    backend%identity = c_funloc(identity)
    backend%refuse = c_funloc(refuse)
    backend%arithmetic = c_funloc(arithmetic)
    backend%conventions = c_funloc(conventions)
    backend%prepare = c_funloc(prepare)
    backend%drop = c_funloc(drop)
    backend%upload = c_funloc(upload)
    backend%run = c_funloc(run)
    backend%download = c_funloc(download)
    backend%workspace = c_null_funptr
    backend%device_time = c_null_funptr
    backends(1) = c_loc(backend)
    table = attest_table(c_loc(backends), 1)
    entry = c_loc(table)
  end function
end module
