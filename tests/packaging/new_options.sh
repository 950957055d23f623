#!/usr/bin/env bash
# new_options.sh SOURCE: in a copy of the project three options are added: a number, a list per head, an input tensor. Each gets
# a member of Call, a row in the table of options and its meaning in the reference; nothing else of the harness is edited. Checks,
# lines, files, isolation, shrinking, fuzzing, random cases and lists must know them; kernels that ignore them are caught, and
# kernels of the contract before refuse them.
set -euo pipefail
source "$(dirname "$0")/copy_project.sh"
source "$(dirname "$0")/new_format.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_project "$1" "$work/attest"
cd "$work/attest"
export CCACHE_BASEDIR=$PWD
fail() { echo "new_options: $*" >&2; exit 1; }
# put FILE BEFORE TEXT: in front of the first line that has BEFORE; it must be there.
put() {
  grep -qF -- "$2" "$1" || fail "$1 has no line with: $2"
  BEFORE=$2 TEXT=$3 awk '!done && index($0, ENVIRON["BEFORE"]) { print ENVIRON["TEXT"]; done = 1 } { print }' "$1" >"$work/edited"
  cat "$work/edited" >"$1"
}

# The members and the rows.
put reference/call/call.h 'std::optional<double> softcap;' \
  '  std::optional<double> temperature;
  std::vector<double> hidden_first;
  bool gate = false;'
sed -i 's/^  out,$/  gate,\n  out,/; s/"state", "out"/"state", "gate", "out"/' reference/call/call.h
grep -q '"gate"' reference/call/call.h || fail "the tensor has no name"
put reference/call/tensor_table.cpp '{TensorId::out, "o"' \
  '    {TensorId::gate, "gate", {batch, key_heads, keys, one}, TypeRule::storage, [](const Call& c) { return c.gate; }, DrawnNumbers{-0.5, 1}},'
put reference/options/options.cpp 'out().tried(' \
  '    number_option("temperature", &Call::temperature, [](double t) { return t > 0; }, "temperature must be above 0").values("t", "scores are divided by it").tried({"1", "2", "0.5"}).only(is_softmax).version(5),
    numbers_option("hidden_first", &Call::hidden_first, nullptr, "a count of keys").values("n,...", "keys that a head does not see").tried({"0", "1", "7"}).only(is_softmax).version(5),
    tensor_option("gate", &Call::gate, TensorId::gate).values("", "keys are hidden by a tensor").only(is_softmax).version(5),'

add_format 5

# What they mean.
sed -i 's/^double Call::scale_value() const { return \(.*\); }$/double Call::scale_value() const { return (\1) \/ temperature.value_or(1); }/' reference/call/call.cpp
grep -q temperature reference/call/call.cpp || fail "scale_value was not changed"
put reference/options/find_fault.cpp 'per_head("sinks"' '  if (auto fault = per_head("hidden_first", p.hidden_first)) return fault;'
meaning='  if (!p.hidden_first.empty() && static_cast<double>(j) < p.hidden_first[static_cast<std::size_t>(h)]) return false;
  if (const ConstTensor& gate = inputs.at(TensorId::gate); gate.data && load(gate.data, gate.dtype, gate.offset(b, h / p.heads_per_group(), j, 0)) < 0) return false;'
put reference/softmax/attention.cpp 'const Placement at = locate(p, b, i, j);' "$meaning"
sed -i 's/kContractVersion = 4/kContractVersion = 5/' backends/backend.h

# One kernel that has them, one that says so and has not, and one of the contract before.
for name in deaf old; do
  cp -r backends/example "backends/$name"
  sed -i "s/example/$name/g; s/Example/${name^}/g" "backends/$name"/*
  mv "backends/$name/example.cpp" "backends/$name/$name.cpp"
done
for name in example deaf; do sed -i 's/int contract() const override { return 4; }/int contract() const override { return 5; }/' "backends/$name/$name.cpp"; done
put backends/example/example.cpp 'if (inputs_.blocks() && !inputs_.block(' \
  "$(sed 's/\bp\./p_./g; s/inputs\./inputs_./g' <<<"$meaning")"

# Compiled to be compiled fast: everything includes what was changed.
cmake -S . -B build -G Ninja ${example_alone/-DATTEST_TESTS=OFF/} -DATTEST_UNITY=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
ninja -C build --quiet attest random_lines
attest=build/bin/attest
all='temperature=2 hidden_first=1,3 gate'
printf '%s\n' "heads=2 seq=8x12 dim=4 $all" "heads=2/1 seq=5 dim=4 gate causal" "heads=2 seq=9x33 dim=4 hidden_first=0,7 out=o,lse" >"$work/new.cases"

# list; one row each.
$attest list options >"$work/options"
for key in temperature hidden_first gate; do grep -q "^$key[ =]" "$work/options" || fail "list does not have $key"; done
# check, with and without isolation: the line comes back as it was.
for how in "" --isolate; do
  $attest check --backend example --bitwise $how --suite-file "$work/new.cases" --json "$work/new.jsonl" >"$work/log" || { cat "$work/log" >&2; fail "check $how"; }
  grep -qF "\"case\":\"heads=2 seq=8x12 dim=4 $all\"" "$work/new.jsonl" || fail "the line is not printed as it was given"
done
for wrong in "seq=4 dim=4 temperature=-1" "heads=2 seq=4 dim=4 hidden_first=1" "op=linear seq=4 dim=4 gate" "seq=4 dim=4 gate=1" "seq=4 dim=4 temprature=1"; do
  status=0
  $attest check --backend example "$wrong" >/dev/null 2>&1 || status=$?
  [ "$status" = 2 ] || fail "$wrong: exit code $status, not 2"
done
# An older kernel refuses them with a sentence, and by name of the first.
$attest check --backend old --suite-file "$work/new.cases" --json "$work/old.jsonl" >/dev/null 2>&1 || true
grep -q '"status":"refused","reason":"temperature: came with version 5 of the contract, and the backend was written for version 4"' "$work/old.jsonl" ||
  fail "an old backend does not refuse a new option"
$attest check --backend old "heads=2 seq=8x12 dim=4" >/dev/null || fail "an old backend refuses what it knows"
# A plug-in of the contract before doesn't get them. One of this contract gets the tensor, which it refuses unless it knows the
# word; of numbers and lists it can't be told.
build_plugin() { cc -std=c11 -fPIC -shared -I backends/plugin "$work/$1.c" -lm -o "$work/lib$1.so"; }
refused() { # PLUG-IN LINE REASON
  $attest check --plugin "$work/lib$1.so" "$2" --json "$work/$1.jsonl" >/dev/null 2>&1 || true
  grep -qF "\"status\":\"refused\",\"reason\":\"$3" "$work/$1.jsonl" || fail "the plug-in $1: $(tail -n 1 "$work/$1.jsonl")"
}
cp backends/plugin/examples/c/example_c.c "$work/older.c"
sed 's/contract = 4/contract = 5/' "$work/older.c" >"$work/younger.c"
sed 's/"softcap", /"softcap", "gate", /' "$work/younger.c" >"$work/knowing.c"
put "$work/knowing.c" 'if (!p->mask) return 1;' '  const attest_tensor* gate = attest_find(p->in, "gate");
  if (gate && element(gate, b, h / (c->query_heads / c->key_heads), j, 0) < 0) return 0;'
for name in older younger knowing; do build_plugin "$name"; done
gate="heads=2/1 seq=5 dim=4 gate causal"
refused older "$gate" "gate: came with version 5 of the contract, and the backend was written for version 4"
refused younger "$gate" "gate: not supported"
$attest check --plugin "$work/libknowing.so" "$gate" "heads=2 seq=8x12 dim=4 gate" >"$work/log" || { cat "$work/log" >&2; fail "a plug-in with the tensor"; }
for option in temperature=2 hidden_first=0,3; do
  refused knowing "heads=2 seq=9x33 dim=4 $option" "${option%=*}: version 2 of the plug-in interface has no member for it"
done
$attest check --plugin "$work/libyounger.so" "heads=2 seq=8x12 dim=4" >/dev/null || fail "a plug-in refuses what it knows"
# A kernel that ignores them is caught and its case made small; what is left names one of them.
status=0
$attest shrink "heads=2 seq=8x12 dim=4 softcap=2 hidden_first=3,5 gate fill=uniform" --backend deaf >"$work/log" || status=$?
[ "$status" = 1 ] && grep -qE "^seq=1x?[12]? dim=1 .*(hidden_first|gate)" "$work/log" || { cat "$work/log" >&2; fail "shrink"; }
grep -q softcap <(sed -n '/^$/,$p' "$work/log") && fail "shrink kept what does not matter"
status=0
$attest fuzz --backend deaf --time 20s --count 300 --seed 2 >"$work/log" || status=$?
[ "$status" = 1 ] && grep -qE "repro|attest check --backend deaf '.*(hidden_first|gate)" "$work/log" || { cat "$work/log" >&2; fail "fuzz finds nothing"; }
$attest fuzz --backend example --time 20s --count 300 --seed 2 >"$work/log" || { cat "$work/log" >&2; fail "fuzz accuses the kernel that has them"; }
# Random lines have them.
build/tests/random_lines 300 5 >"$work/lines"
for key in temperature= hidden_first= 'gate\b'; do grep -q " $key" "$work/lines" || fail "no random line has $key"; done
# Files: metadata and a tensor, checked, and made small as a file.
tensor() { printf '"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%d,%d]}' "$@"; }
header="{\"__metadata__\":{\"options\":\"temperature=2 hidden_first=1 gate\"},$(tensor q 1,1,2,1 0 8),$(tensor k 1,1,4,1 8 24),$(tensor v 1,1,4,1 24 40),$(tensor gate 1,1,4,1 40 56)}"
size=${#header}
{
  printf "\\x$(printf %02x $((size % 256)))\\x$(printf %02x $((size / 256)))\\0\\0\\0\\0\\0\\0%s" "$header"
  one='\0\0\x80\x3f' minus_one='\0\0\x80\xbf' two='\0\0\0\x40'
  printf "$one$two$one$two$minus_one$one$one$minus_one$two$one$one$minus_one$one$one"
} >"$work/new.safetensors"
$attest check "$work/new.safetensors" --backend example >"$work/log" || { cat "$work/log" >&2; fail "a file with the options"; }
status=0
$attest shrink "$work/new.safetensors" --backend deaf --out "$work/small.safetensors" >"$work/log" || status=$?
[ "$status" = 1 ] && grep -aqE 'hidden_first|gate' "$work/small.safetensors" || { cat "$work/log" >&2; fail "shrink of a file"; }
$attest check "$work/small.safetensors" --backend example >/dev/null || fail "the small file on the kernel that has the options"
check_format old "$work/younger.c"
echo "new_options: three options, a format, $(wc -l <"$work/new.cases") lines, nothing of the harness edited"
