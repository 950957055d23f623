! The interface of attest_plugin.h for Fortran 2008: its structs, member by member, and what a backend needs of its
! constants. attest holds the sizes of the structs against its own when the plug-in is loaded.
module attest_plugin
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: attest_ok = 0, attest_refused = 1, attest_failed = 2
  integer(c_int32_t), parameter :: attest_abi = 1
  integer(c_int32_t), parameter :: attest_f64 = 0, attest_f32 = 1, attest_f16 = 2, attest_bf16 = 3
  integer(c_int32_t), parameter :: attest_bottom_right = 1, attest_boolean_mask = 1, attest_additive_mask = 2
  ! Bits of features, by their number n in ATTEST_HAS(n).
  integer, parameter :: has_f64 = 0, has_f32 = 1, has_f16 = 2, has_bf16 = 3, has_attention = 4, has_linear = 5, has_gated = 6, &
                        has_delta = 7, has_gated_delta = 8, has_batch = 9, has_heads = 10, has_grouped_heads = 11, &
                        has_other_key_length = 12, has_other_value_dim = 13, has_empty = 14, has_scale = 15, has_causal = 16, &
                        has_bottom_right = 17, has_window = 18, has_prefix = 19, has_lengths = 20, has_query_lengths = 21, &
                        has_segments = 22, has_boolean_mask = 23, has_additive_mask = 24, has_mask_type = 25, has_blocks = 26, &
                        has_softcap = 27, has_alibi = 28, has_sinks = 29, has_dropout = 30, has_past = 31, has_pages = 32, &
                        has_decay_per_head = 33, has_beta_shared = 34, has_state = 35, has_lse = 36, has_weights = 37, &
                        has_raw = 38, has_capped = 39, has_biased = 40, has_present = 41, has_strides = 42, has_packed = 43, &
                        has_causal_prefix = 44, has_slopes_per_batch = 45, has_gap = 46
  integer, parameter :: known_features = 47
  ! Bits of outputs, likewise.
  integer, parameter :: out_lse = 1, out_weights = 2, out_raw = 3, out_capped = 4, out_biased = 5, out_present = 6
  integer(c_int64_t), parameter :: attest_unbounded = huge(0_c_int64_t)

  type, bind(c) :: attest_text
    integer(c_int64_t) :: size
    type(c_ptr) :: data
    integer(c_int64_t) :: capacity
  end type

  type, bind(c) :: attest_tensor
    type(c_ptr) :: data
    integer(c_int32_t) :: device_type, device_id, ndim
    integer(c_int8_t) :: code, bits
    integer(c_int16_t) :: lanes
    type(c_ptr) :: shape, strides
    integer(c_int64_t) :: byte_offset
  end type

  type, bind(c) :: attest_placement
    integer(c_int32_t) :: layout, has_strides
    integer(c_int64_t) :: strides(4), offset
  end type

  type, bind(c) :: attest_call
    integer(c_int64_t) :: size, features
    type(c_ptr) :: line
    integer(c_int32_t) :: op, dtype
    integer(c_int64_t) :: batch, query_heads, key_heads, query_length, key_length, key_dim, value_dim
    real(c_double) :: scale
    integer(c_int32_t) :: causal, align
    integer(c_int64_t) :: window_left, window_right, prefix
    type(c_ptr) :: query_lengths, key_lengths
    integer(c_int64_t) :: segment_count
    type(c_ptr) :: query_segments, key_segments
    integer(c_int32_t) :: mask_kind, mask_dtype, mask_axes(4)
    integer(c_int64_t) :: block_rows, block_columns
    real(c_double) :: softcap
    integer(c_int32_t) :: alibi, sinks
    type(c_ptr) :: given_slopes, given_sinks
    integer(c_int64_t) :: given_slope_count, given_sink_count
    real(c_double) :: dropout
    integer(c_int64_t) :: dropout_seed, past, page_size
    integer(c_int32_t) :: decay_per_head, beta_shared, initial_state, outputs, layout, prefix_causal
    type(attest_placement) :: placements(5)
    integer(c_int64_t) :: gap
  end type

  type, bind(c) :: attest_inputs
    integer(c_int64_t) :: size
    type(c_ptr) :: q, k, v, mask, past_k, past_v, page_table, blocks, slopes, sinks, keep, decay, beta, state
    type(c_ptr) :: query_starts, key_starts
  end type

  type, bind(c) :: attest_outputs
    integer(c_int64_t) :: size
    type(c_ptr) :: out, lse, raw, capped, biased, weights, present_k, present_v, present_state, query_starts
  end type

  type, bind(c) :: attest_context
    integer(c_int64_t) :: size
    integer(c_int32_t) :: threads, reserved
    type(c_ptr) :: device
  end type

  type, bind(c) :: attest_identity
    integer(c_int64_t) :: size
    integer(c_int32_t) :: contract, side_by_side
    type(c_ptr) :: library, device
  end type

  type, bind(c) :: attest_arithmetic
    integer(c_int64_t) :: size
    integer(c_int32_t) :: accumulator, stored_weights
    real(c_double) :: exp_ulps, log_ulps, tanh_ulps
    integer(c_int32_t) :: base2, scale, division, normalised_before_storage
    integer(c_int64_t) :: key_block
    real(c_double) :: lazy_threshold
    integer(c_int32_t) :: stored_scores, score_stores, sum_of_stored, flush_to_zero
    integer(c_int64_t) :: state_chunk, parts
    integer(c_int32_t) :: stored_parts, fused_log2e, no_maximum, weights_from_lse
  end type

  type, bind(c) :: attest_conventions
    integer(c_int64_t) :: size
    type(c_ptr) :: fields(10)
  end type

  type, bind(c) :: attest_backend
    integer(c_int64_t) :: size
    type(c_ptr) :: name, user
    type(c_funptr) :: create, destroy, identity, refuse, arithmetic, conventions
    type(c_funptr) :: prepare, drop, upload, run, download, workspace, device_time
  end type

  type, bind(c) :: attest_plugin_table
    integer(c_int64_t) :: size
    integer(c_int32_t) :: abi, backend_count
    type(c_ptr) :: backends
    integer(c_int64_t) :: known_features
    integer(c_int64_t) :: backend_size, call_size, inputs_size, outputs_size, tensor_size, context_size, identity_size, &
                          arithmetic_size, conventions_size, text_size
  end type

contains

  ! A table for `count` backends, whose addresses lie at `backends`.
  function attest_table(backends, count) result(table)
    type(c_ptr), intent(in) :: backends
    integer, intent(in) :: count
    type(attest_plugin_table) :: table
    type(attest_text) :: text
    type(attest_tensor) :: tensor
    type(attest_call) :: call
    type(attest_inputs) :: inputs
    type(attest_outputs) :: outputs
    type(attest_context) :: context
    type(attest_identity) :: identity
    type(attest_arithmetic) :: arithmetic
    type(attest_conventions) :: conventions
    type(attest_backend) :: backend
    table%size = c_sizeof(table)
    table%abi = attest_abi
    table%backend_count = int(count, c_int32_t)
    table%backends = backends
    table%known_features = shiftl(1_c_int64_t, known_features) - 1
    table%backend_size = c_sizeof(backend)
    table%call_size = c_sizeof(call)
    table%inputs_size = c_sizeof(inputs)
    table%outputs_size = c_sizeof(outputs)
    table%tensor_size = c_sizeof(tensor)
    table%context_size = c_sizeof(context)
    table%identity_size = c_sizeof(identity)
    table%arithmetic_size = c_sizeof(arithmetic)
    table%conventions_size = c_sizeof(conventions)
    table%text_size = c_sizeof(text)
  end function

  ! Writes a sentence for the host, cut where it doesn't fit.
  subroutine attest_say(message, sentence)
    type(attest_text), intent(in) :: message
    character(*), intent(in) :: sentence
    character(c_char), pointer :: to(:)
    integer :: n, length
    call c_f_pointer(message%data, to, [message%capacity])
    length = min(len(sentence), int(message%capacity) - 1)
    do n = 1, length
      to(n) = sentence(n:n)
    end do
    to(length + 1) = c_null_char
  end subroutine
end module
