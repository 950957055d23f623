! example_fortran: softmax attention with every option, as plain loops in double, as a plug-in in Fortran 2008. What it can't
! do it refuses with a sentence: linear attention.
!
!   gfortran -O2 -fPIC -shared attest_plugin.f90 attest_tensor.f90 example_fortran.f90 -o libexample_fortran.so
module example_fortran
  use, intrinsic :: ieee_arithmetic
  use attest_plugin
  use attest_tensor_elements
  implicit none
  private
  public :: entry

  integer, parameter :: not_mine(*) = [has_linear, has_gated, has_delta, has_gated_delta, has_decay_per_head, &
                                       has_beta_shared, has_state]
  character(kind=c_char), target :: name(16) = [character(1) :: 'e', 'x', 'a', 'm', 'p', 'l', 'e', '_', 'f', 'o', 'r', 't', &
                                                'r', 'a', 'n', c_null_char]
  character(kind=c_char, len=22), target :: library = 'plain Fortran loops'//c_null_char
  character(kind=c_char, len=16), target :: device = 'CPU, 1 thread'//c_null_char
  character(kind=c_char, len=4), target :: f64_name = 'f64'//c_null_char
  type(attest_backend), target :: backend
  type(attest_plugin_table), target :: table
  type(c_ptr), target :: backends(1)

  ! One call made ready. Its lists and tensors are the host's.
  type :: plan
    type(attest_call), pointer :: call => null()
    integer(c_int64_t), pointer :: query_lengths(:) => null(), key_lengths(:) => null()
    integer(c_int64_t), pointer :: query_segments(:) => null(), key_segments(:) => null()
    integer(c_int64_t), pointer :: query_starts(:) => null(), key_starts(:) => null()
    type(attest_view) :: q, k, v, mask, past_k, past_v, pages, blocks, slopes, sinks, keep
    real(c_double), allocatable :: out(:, :, :, :), lse(:, :, :), scores(:)
    real(c_double), allocatable, dimension(:, :, :, :) :: raw, capped, biased, weights
  end type

contains

  ! ---- which keys a query sees

  integer(c_int64_t) function queries_of(p, b)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b
    queries_of = p%call%query_length
    if (associated(p%query_lengths)) queries_of = p%query_lengths(b + 1)
  end function

  integer(c_int64_t) function keys_of(p, b)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b
    keys_of = p%call%key_length
    if (associated(p%key_lengths)) keys_of = p%key_lengths(b + 1)
  end function

  ! Queries of a sequence that have storage.
  integer(c_int64_t) function stored_queries(p, b)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b
    stored_queries = p%call%query_length
    if (btest(p%call%features, has_packed)) stored_queries = queries_of(p, b)
  end function

  ! Where query i and key j stand to each other: on the diagonal where key equals diagonal. False: in other segments.
  logical function place(p, b, i, j, diagonal, key)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, i, j
    integer(c_int64_t), intent(out) :: diagonal, key
    integer(c_int64_t) :: first_query, first_key, queries, keys, n
    logical :: bottom_right
    bottom_right = p%call%align == attest_bottom_right
    place = .true.
    key = j
    diagonal = i + p%call%past
    if (p%call%past == 0 .and. bottom_right) diagonal = i + keys_of(p, b) - queries_of(p, b)
    if (.not. btest(p%call%features, has_segments)) return
    first_query = 0
    first_key = 0
    do n = 1, p%call%segment_count
      keys = p%key_segments(n)
      queries = keys
      if (associated(p%query_segments)) queries = p%query_segments(n)
      if (i < first_query + queries .or. j < first_key + keys) then
        diagonal = i - first_query
        if (bottom_right) diagonal = diagonal + keys - queries
        key = j - first_key
        place = i < first_query + queries .and. j < first_key + keys
        return
      end if
      first_query = first_query + queries
      first_key = first_key + keys
    end do
    place = .false.
  end function

  logical function sees(p, b, h, i, j)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, h, i, j
    integer(c_int64_t) :: diagonal, key
    sees = .false.
    if (i >= queries_of(p, b) .or. j >= keys_of(p, b)) return
    if (.not. place(p, b, i, j, diagonal, key)) return
    if (p%call%prefix_causal /= 0 .and. key > diagonal) return
    if (key >= p%call%prefix) then
      if (p%call%causal /= 0 .and. key > diagonal) return
      if (p%call%window_left /= attest_unbounded .and. key < diagonal - p%call%window_left) return
      if (p%call%window_right /= attest_unbounded .and. key - diagonal > p%call%window_right) return
    end if
    if (p%blocks%there) then
      if (element(p%blocks, b, h, i/p%call%block_rows, j/p%call%block_columns) == 0) return
    end if
    if (p%call%mask_kind == attest_boolean_mask) then
      if (element(p%mask, b, h, i, j) == 0) return
    else if (p%call%mask_kind == attest_additive_mask) then
      if (element(p%mask, b, h, i, j) < -huge(1.0_c_double)) return
    end if
    sees = .true.
  end function

  ! ---- scores and weights

  real(c_double) function query(p, b, h, i, d)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, h, i, d
    if (associated(p%query_starts)) then
      query = element(p%q, 0_c_int64_t, h, p%query_starts(b + 1) + i, d)
    else
      query = element(p%q, b, h, i, d)
    end if
  end function

  ! Feature d of key (or value) j: in the cache, in a page or among the new ones.
  real(c_double) function cached(p, now, past, b, g, j, d)
    type(plan), intent(in) :: p
    type(attest_view), intent(in) :: now, past
    integer(c_int64_t), intent(in) :: b, g, j, d
    integer(c_int64_t) :: page
    if (p%pages%there) then
      page = int(element(p%pages, b, j/p%call%page_size, 0_c_int64_t, 0_c_int64_t), c_int64_t)
      cached = element(now, page, g, mod(j, p%call%page_size), d)
    else if (j < p%call%past) then
      cached = element(past, b, g, j, d)
    else if (associated(p%key_starts)) then
      cached = element(now, 0_c_int64_t, g, p%key_starts(b + 1) + j - p%call%past, d)
    else
      cached = element(now, b, g, j - p%call%past, d)
    end if
  end function

  subroutine score(p, b, h, i, j, raw, capped, biased)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, h, i, j
    real(c_double), intent(out) :: raw, capped, biased
    integer(c_int64_t) :: d, g, diagonal, key
    real(c_double) :: slope
    logical :: together
    g = h/(p%call%query_heads/p%call%key_heads)
    raw = 0
    do d = 0, p%call%key_dim - 1
      raw = raw + query(p, b, h, i, d)*cached(p, p%k, p%past_k, b, g, j, d)
    end do
    raw = raw*p%call%scale
    capped = raw
    if (p%call%softcap > 0) capped = p%call%softcap*tanh(raw/p%call%softcap)
    biased = capped
    if (p%call%mask_kind == attest_additive_mask) biased = biased + element(p%mask, b, h, i, j)
    if (p%slopes%there) then
      together = place(p, b, i, j, diagonal, key)
      slope = element(p%slopes, h, 0_c_int64_t, 0_c_int64_t, 0_c_int64_t)
      if (btest(p%call%features, has_slopes_per_batch)) slope = element(p%slopes, b, h, 0_c_int64_t, 0_c_int64_t)
      if (together) biased = biased - slope*abs(diagonal - key)
    end if
  end subroutine

  ! Dropout: keep / (1 - p), given as a tensor or drawn by the seed.
  real(c_double) function keep_factor(p, b, h, i, j) result(factor)
    type(plan), intent(in) :: p
    integer(c_int64_t), intent(in) :: b, h, i, j
    logical :: kept
    factor = 1
    if (p%keep%there) then
      kept = element(p%keep, b, h, i, j) /= 0
    else if (p%call%dropout > 0) then
      kept = keeps(p%call%dropout, p%call%dropout_seed, b, h, i, j)
    else
      return
    end if
    factor = merge(1/(1 - p%call%dropout), 0.0_c_double, kept)
  end function

  ! One row of queries. A stage that was asked for is written for every key, seen or not.
  subroutine attend(p, b, h, i)
    type(plan), intent(inout) :: p
    integer(c_int64_t), intent(in) :: b, h, i
    integer(c_int64_t) :: j, d, g
    real(c_double) :: raw, capped, biased, largest, total, weight, kept, infinity, sink
    logical :: any_seen, seen, stages
    g = h/(p%call%query_heads/p%call%key_heads)
    infinity = ieee_value(infinity, ieee_positive_inf)
    stages = allocated(p%raw) .or. allocated(p%capped) .or. allocated(p%biased)
    sink = -infinity
    if (p%sinks%there) sink = element(p%sinks, h, 0_c_int64_t, 0_c_int64_t, 0_c_int64_t)
    any_seen = sink > -infinity ! a head may have none
    largest = sink
    total = 0
    do j = 0, p%call%key_length - 1
      seen = sees(p, b, h, i, j)
      if (allocated(p%weights)) p%weights(j + 1, i + 1, h + 1, b + 1) = 0
      if (.not. (seen .or. stages)) cycle
      call score(p, b, h, i, j, raw, capped, biased)
      if (allocated(p%raw)) p%raw(j + 1, i + 1, h + 1, b + 1) = raw
      if (allocated(p%capped)) p%capped(j + 1, i + 1, h + 1, b + 1) = capped
      if (allocated(p%biased)) p%biased(j + 1, i + 1, h + 1, b + 1) = merge(biased, -infinity, seen)
      if (.not. seen) cycle
      p%scores(j + 1) = biased
      if (.not. any_seen .or. biased > largest) largest = biased
      any_seen = .true.
    end do
    p%out(:, i + 1, h + 1, b + 1) = 0
    p%lse(i + 1, h + 1, b + 1) = largest
    if (.not. any_seen) return ! a row that sees nothing: output 0, lse -inf
    if (sink > -infinity) total = exp(sink - largest)
    do j = 0, p%call%key_length - 1
      if (.not. sees(p, b, h, i, j)) cycle
      weight = exp(p%scores(j + 1) - largest)
      total = total + weight
      if (allocated(p%weights)) p%weights(j + 1, i + 1, h + 1, b + 1) = weight
      kept = weight*keep_factor(p, b, h, i, j)
      do d = 0, p%call%value_dim - 1
        p%out(d + 1, i + 1, h + 1, b + 1) = p%out(d + 1, i + 1, h + 1, b + 1) + kept*cached(p, p%v, p%past_v, b, g, j, d)
      end do
    end do
    p%out(:, i + 1, h + 1, b + 1) = p%out(:, i + 1, h + 1, b + 1)/total
    if (allocated(p%weights)) then ! those of hidden keys stay 0, whatever the sum
      associate (row => p%weights(:, i + 1, h + 1, b + 1))
        where (row /= 0) row = row/total
      end associate
    end if
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
    do n = 0, known_features - 1
      if (.not. any(not_mine == n)) others = ibclr(others, n)
    end do
    refuse = attest_ok
    if (others == 0) return
    call attest_say(reason, 'linear attention: softmax attention is all there is so far')
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
    if (c_associated(call%query_segments)) call c_f_pointer(call%query_segments, p%query_segments, [call%segment_count])
    if (c_associated(call%key_segments)) call c_f_pointer(call%key_segments, p%key_segments, [call%segment_count])
    allocate (p%out(call%value_dim, call%query_length, call%query_heads, call%batch), &
              p%lse(call%query_length, call%query_heads, call%batch), p%scores(call%key_length), stat=status)
    if (status == 0) call allocate_stage(call, out_raw, p%raw, status)
    if (status == 0) call allocate_stage(call, out_capped, p%capped, status)
    if (status == 0) call allocate_stage(call, out_biased, p%biased, status)
    if (status == 0) call allocate_stage(call, out_weights, p%weights, status)
    prepare = attest_ok
    made = c_loc(p)
    if (status == 0) return
    deallocate (p)
    call attest_say(message, 'no memory for the results')
    prepare = attest_failed
  end function

  subroutine allocate_stage(call, output, stage, status)
    type(attest_call), intent(in) :: call
    integer, intent(in) :: output
    real(c_double), allocatable, intent(out) :: stage(:, :, :, :)
    integer, intent(out) :: status
    status = 0
    if (.not. btest(call%outputs, output)) return
    allocate (stage(call%key_length, call%query_length, call%query_heads, call%batch), stat=status)
  end subroutine

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
    p%mask = view_of(inputs%mask)
    p%past_k = view_of(inputs%past_k)
    p%past_v = view_of(inputs%past_v)
    p%pages = view_of(inputs%page_table)
    p%blocks = view_of(inputs%blocks)
    p%slopes = view_of(inputs%slopes)
    p%sinks = view_of(inputs%sinks)
    p%keep = view_of(inputs%keep)
    if (c_associated(inputs%query_starts)) call c_f_pointer(inputs%query_starts, p%query_starts, [p%call%batch + 1])
    if (c_associated(inputs%key_starts)) call c_f_pointer(inputs%key_starts, p%key_starts, [p%call%batch + 1])
    upload = attest_ok
  end function

  integer(c_int) function run(pointer, message) bind(c, name='')
    type(c_ptr), value :: pointer, message
    type(plan), pointer :: p
    integer(c_int64_t) :: b, h, i
    call c_f_pointer(pointer, p)
    do b = 0, p%call%batch - 1
      do h = 0, p%call%query_heads - 1
        do i = 0, stored_queries(p, b) - 1
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
    integer(c_int64_t) :: lse(4)
    call c_f_pointer(pointer, p)
    lse = [1_c_int64_t, p%call%query_length, p%call%query_heads, p%call%batch]
    call write_rows(p, outputs%out, p%out)
    call write_rows(p, outputs%lse, reshape(p%lse, lse))
    if (allocated(p%raw)) call write_rows(p, outputs%raw, p%raw)
    if (allocated(p%capped)) call write_rows(p, outputs%capped, p%capped)
    if (allocated(p%biased)) call write_rows(p, outputs%biased, p%biased)
    if (allocated(p%weights)) call write_rows(p, outputs%weights, p%weights)
    call write_present(p, outputs%present_k, p%k, p%past_k)
    call write_present(p, outputs%present_v, p%v, p%past_v)
    download = attest_ok
  end function

  ! `tensor` may be NULL, as of all outputs that nobody asked for.
  subroutine write_rows(p, tensor, rows)
    type(plan), intent(in) :: p
    type(c_ptr), intent(in) :: tensor
    real(c_double), intent(in) :: rows(:, :, :, :)
    type(attest_view) :: to
    integer(c_int64_t) :: b, h, i, d, sequence, first
    to = view_of(tensor)
    if (.not. to%there) return
    do b = 0, p%call%batch - 1
      sequence = b
      first = 0
      if (associated(p%query_starts)) then
        sequence = 0
        first = p%query_starts(b + 1)
      end if
      do h = 0, p%call%query_heads - 1
        do i = 0, stored_queries(p, b) - 1
          do d = 0, size(rows, 1, c_int64_t) - 1
            call put(to, sequence, h, first + i, d, rows(d + 1, i + 1, h + 1, b + 1))
          end do
        end do
      end do
    end do
  end subroutine

  ! The cache and what is new, as one tensor.
  subroutine write_present(p, tensor, now, past)
    type(plan), intent(in) :: p
    type(c_ptr), intent(in) :: tensor
    type(attest_view), intent(in) :: now, past
    type(attest_view) :: to
    integer(c_int64_t) :: b, g, j, d
    to = view_of(tensor)
    if (.not. to%there) return
    do b = 0, to%shape(1) - 1
      do g = 0, to%shape(2) - 1
        do j = 0, to%shape(3) - 1
          do d = 0, to%shape(4) - 1
            call put(to, b, g, j, d, cached(p, now, past, b, g, j, d))
          end do
        end do
      end do
    end do
  end subroutine

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
