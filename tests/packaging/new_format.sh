# Sourced by new_options.sh, which sets attest, work and fail. A format of 16 bits with another layout than those that exist, six
# bits of exponent and nine of mantissa, is an enumerator and a row of the table of formats. Checks, files, isolation, plug-ins,
# pages, shrinking, fuzzing and lists must know it, and a kernel that reads its bits as f16 is caught.

# add_format VERSION: in the copy of the project; the format comes with this version of the contract. Plug-ins have a word for it.
add_format() {
  sed -i 's/^enum class DType .*{ f64, f32, f16, bf16, /&m16, /' reference/base/format.h
  put reference/base/format.h 'Format{DType::e4m3' \
    "    Format{DType::m16, \"m16\", 16, 6, 9, TopCodes::infinity_and_nan, \"M16\", \"m16\", DlpackCode::floating, $1},"
  sed -i 's/"dtype=f16", "dtype=bf16",/& "dtype=m16",/' backends/plugin/attest/attest_plugin.h
}

# check_format OLD_BACKEND PLUGIN: a backend of the version before, and the source of a plug-in of this version that knows f16.
check_format() {
  local how lines=("dtype=m16 seq=5x7 dim=4 out=o,lse" "heads=2/1 seq=5 dim=4 causal k.dtype=m16 out.dtype=bf16"
    "dtype=m16 seq=5 dim=4 out.dtype=f32 mask=add:BHQK:normal" "dtype=m16 seq=3 dim=2 fill=huge")
  "$attest" list options >"$work/options"
  grep -q '^dtype=.*|bf16|m16 ' "$work/options" || fail "list does not have the format"
  for how in "" --isolate; do
    "$attest" check --backend example $how "${lines[@]}" --json "$work/format.jsonl" >"$work/log" || { cat "$work/log" >&2; fail "the format, check $how"; }
  done
  grep -qF "\"case\":\"${lines[1]}\"" "$work/format.jsonl" || fail "the line of the format is not printed as it was given"
  "$attest" report "$work/format.jsonl" --out "$work/format.html" >/dev/null && grep -q 'dtype=m16' "$work/format.html" || fail "no page of the format"
  "$attest" check --backend "$1" "${lines[0]}" --json "$work/format.jsonl" >/dev/null 2>&1 || true
  grep -q '"status":"refused","reason":"dtype: came with version' "$work/format.jsonl" || fail "an older backend does not refuse the format"
  # Read as f16: the plug-in's header says nothing else of floating numbers with 16 bits.
  sed 's/"dtype=bf16", /"dtype=bf16", "dtype=m16", /' "$2" >"$work/misreading.c"
  build_plugin misreading
  local status=0
  "$attest" shrink "${lines[0]} softcap=3" --plugin "$work/libmisreading.so" >"$work/log" || status=$?
  [ "$status" = 1 ] && grep -q '^dtype=m16 seq=1' "$work/log" || { cat "$work/log" >&2; fail "a kernel that reads the format as f16"; }
  build/tests/random_lines 300 5 >"$work/lines"
  grep -q 'dtype=m16' "$work/lines" || fail "no random line has the format"
  # A file: q, k and v of 1, 2, 1.5 and -1.
  local data='\x00\x3e\x00\x40' header
  header='{"__metadata__":{"tolerance":"1e-6"},"q":{"dtype":"M16","shape":[1,2],"data_offsets":[0,4]},"k":{"dtype":"M16","shape":[1,2],"data_offsets":[4,8]},"v":{"dtype":"M16","shape":[1,2],"data_offsets":[8,12]},"output":{"dtype":"F32","shape":[1,2],"data_offsets":[12,20]}}'
  {
    printf "\\x$(printf %02x $((${#header} % 256)))\\x$(printf %02x $((${#header} / 256)))\\0\\0\\0\\0\\0\\0%s" "$header"
    printf "$data$data$data"'\0\0\x80\x3f\0\0\0\x40'
  } >"$work/format.safetensors"
  "$attest" check "$work/format.safetensors" --backend example >"$work/log" || { cat "$work/log" >&2; fail "a file of the format"; }
}
