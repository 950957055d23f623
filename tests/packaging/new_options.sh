#!/usr/bin/env bash
# new_options.sh SOURCE: in a copy of the project three options are added (a number, a list per head, an input tensor), a result
# that keys number, an operator, and a format (new_format.sh). Each gets a name, a row in its tables and its meaning in the reference; nothing of the harness
# is edited. Checks, lines, files, isolation, Python (new_python.sh), shrinking, fuzzing, random cases and lists must know them; kernels that ignore them or
# get them wrong are caught, and kernels of the contract before refuse them.
set -euo pipefail
source "$(dirname "$0")/copy_project.sh"
source "$(dirname "$0")/new_format.sh"
source "$(dirname "$0")/new_python.sh"
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

# edit FILE SCRIPT: sed, which must change something.
edit() {
  sed "$2" "$1" >"$work/edited"
  cmp -s "$1" "$work/edited" && fail "$1 is not changed by $2"
  cat "$work/edited" >"$1"
}
# touched WHAT: which files were edited for it.
touched() {
  git add -A
  [ $# = 0 ] || echo "new_options: $1: $(git diff --cached --name-only | wc -l) files:" $(git diff --cached --name-only)
  git -c user.name=new -c user.email=new@localhost commit -q -m "${1:-before}"
}
git init -q

# Besides the kernel that gets everything, one that says so and has not, and one of the contract before.
for name in deaf old; do
  cp -r backends/example "backends/$name"
  sed -i "s/example/$name/g; s/Example/${name^}/g" "backends/$name"/*
  mv "backends/$name/example.cpp" "backends/$name/$name.cpp"
done
for name in example deaf; do edit "backends/$name/$name.cpp" 's/int contract() const override { return 9; }/int contract() const override { return 10; }/'; done
edit backends/backend.h 's/kContractVersion = 9/kContractVersion = 10/'
touched

# The members and the rows.
put reference/call/call.h 'std::optional<double> softcap;' \
  '  std::optional<double> temperature;
  std::vector<double> hidden_first;
  bool gate = false;'
edit reference/call/call.h 's/^  out,$/  gate,\n  out,/; s/"dpresent", "out"/"dpresent", "gate", "out"/'
put reference/call/tensor_table.cpp '{TensorId::out, "o"' \
  '    {TensorId::gate, "gate", {batch, key_heads, keys, one}, TypeRule::storage, [](const Call& c) { return c.gate; }, kScores, DrawnNumbers{-0.5, 1}},'
put reference/options/options.cpp 'out().grown(' \
  '    number_option("temperature", &Call::temperature, [](double t) { return t > 0; }, "temperature must be above 0").values("t", "scores are divided by it").tried({"1", "2", "0.5"}).only(kScores).version(10),
    numbers_option("hidden_first", &Call::hidden_first, nullptr, "a count of keys").values("n,...", "keys that a head does not see").tried({"0", "1", "7"}).only(kScores).version(10),
    tensor_option("gate", &Call::gate, TensorId::gate).values("", "keys are hidden by a tensor").only(kScores).version(10),'

# What they mean.
edit reference/call/call.cpp 's/^double Call::scale_value() const { return \(.*\); }$/double Call::scale_value() const { return (\1) \/ temperature.value_or(1); }/'
put reference/options/find_fault.cpp 'per_head("sinks"' '  if (auto fault = per_head("hidden_first", p.hidden_first)) return fault;'
meaning='  if (!p.hidden_first.empty() && static_cast<double>(j) < p.hidden_first[static_cast<std::size_t>(h)]) return false;
  if (const ConstTensor& gate = inputs.at(TensorId::gate); gate.data && load(gate.data, gate.dtype, gate.offset(b, h / p.heads_per_group(), j, 0)) < 0) return false;'
put reference/softmax/attention.cpp 'const Placement at = locate(p, b, i, j);' "$meaning"
put backends/example/example.cpp 'if (inputs_.blocks() && !inputs_.block(' \
  "$(sed 's/\bp\./p_./g; s/inputs\./inputs_./g' <<<"$meaning")"

touched "three options"

# A result: the sum of the weights that each key gets from the queries of its group.
put reference/call/call.h '  present_k,' '  received,'
edit reference/call/call.h 's/"present_k"/"received", &/; s/^  present,$/&\n  received,/; s/"present", "dq",/"present", "received", "dq",/'
put reference/call/tensor_table.cpp '{TensorId::present_k,' \
  '    {TensorId::received, "received", {batch, key_heads, keys, one}, TypeRule::storage, nullptr, kScores, {}, Output::received},'
edit reference/options/options.cpp 's/    out()\.grown(\[\](const Call& p) { return /&p.wants(Output::received) ? 10 : /; s/"o,max,sum"})/"o,max,sum", "o,received"})/'
edit reference/softmax/softmax_operator.cpp 's/^      if (is_cache(id))$/      if (id == TensorId::received) received(p, inputs, producers, all);\n&/'
put reference/softmax/softmax_operator.cpp '  double row_operations(const Call& p) const override {' '  void received(const Call& p, const Inputs& inputs, const std::vector<Producer>& producers, WholeResults& to) const {
    Call weighed = p;
    weighed.outputs = {Output::weights};
    const auto keys = static_cast<std::size_t>(p.key_length);
    const auto count = static_cast<std::size_t>(p.batch * p.key_heads) * keys;
    std::vector<double>& values = to.values.of(TensorId::received);
    values.assign(count, 0);
    for (ResultValues& bounds : to.bounds) bounds.of(TensorId::received).assign(count, 0);
    ResultValues row;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        const auto reference = head(weighed, inputs, b, h, producers);
        const auto first = static_cast<std::size_t>(b * p.key_heads + h / p.heads_per_group()) * keys;
        const auto add = [&](std::vector<double>& sums) {
          for (std::size_t j = 0; j < keys; ++j) sums[first + j] += row.of(TensorId::weights)[j];
        };
        for (std::int64_t i = 0; i < p.query_length; ++i) {
          reference->attend(i, row);
          add(values);
          for (std::size_t n = 0; n < producers.size(); ++n) {
            reference->bound(n, row);
            add(to.bounds[n].of(TensorId::received));
          }
        }
      }
    }
    for (std::size_t n = 0; n < producers.size(); ++n) {
      const Storing storing(producers[n].arithmetic, producers[n].type_of(p, TensorId::received));
      const double terms = 2 * static_cast<double>(p.heads_per_group() * p.query_length) * unit_roundoff(producers[n].arithmetic.accumulator);
      for (std::size_t at = 0; at < count; ++at) {
        double& bound = to.bounds[n].of(TensorId::received)[at];
        const double sum = values[at], error = bound;
        bound = storing.bound(sum, error + terms * (sum + error));
      }
    }
  }'
put backends/example/example.cpp 'for (std::int64_t b = 0; b < p_.batch; ++b) {' \
  '    received_.assign(static_cast<std::size_t>(p_.batch * p_.key_heads * p_.key_length), 0);'
put backends/example/example.cpp 'results_.lse[row] = max + std::log(sum);' \
  '    for (std::int64_t j = 0; j < p_.key_length; ++j) {
      Real& received = received_[static_cast<std::size_t>((b * p_.key_heads + h / p_.heads_per_group()) * p_.key_length + j)];
      if (seen_[static_cast<std::size_t>(j)]) received += std::exp(scores_[static_cast<std::size_t>(j)] - max) / sum;
    }'
edit backends/example/example.cpp 's/    results_.download(inputs_, outputs);/    download_all(outputs);/'
put backends/example/example.cpp '/// Keys and values of one head as dense rows' '  void download_all(const Outputs& outputs) const {
    results_.download(inputs_, outputs);
    const MutableTensor* to = outputs.find(TensorId::received);
    if (!to) return;
    std::size_t n = 0;
    each_index(to->shape, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
      store(to->data, to->dtype, to->offset(b, h, j, d), static_cast<double>(received_[n++]));
    });
  }
'
put backends/example/example.cpp 'std::vector<char> seen_;' '  std::vector<Real> received_;'
edit backends/plugin/attest/attest_plugin.h 's/"out=present",/"out=present", "out=received",/'
touched "a result"

# An operator with one result: o_i = scale / Lk * sum over j of <q_i, k_j> v_j.
edit reference/call/call.h 's/gated_delta, merge };/gated_delta, merge, average };/; s/"gated_delta", "merge");/"gated_delta", "merge", "average");/
  s/^    {.tokens = false, .*},/&\n    {.since = 10},/'
edit reference/operators/operator_table.cpp 's/merge_operator};/merge_operator, average_operator};/; s/^#include "reference\/linear/#include "reference\/average\/average_operator.h"\n&/'
edit reference/CMakeLists.txt 's/^  linear\/linear_attention/  average\/average_operator.cpp\n&/'
mkdir reference/average
mv tests/packaging/new_operator/average_operator.* reference/average
mv tests/packaging/new_operator/average.h backends/example
put backends/example/example.cpp 'if (problem.has_state()) {' '    if (problem.op == Op::average) {
      if (problem.dtype == DType::f64) return std::make_unique<example::AveragePlan<double>>(problem);
      return std::make_unique<example::AveragePlan<float>>(problem);
    }'
put backends/example/example.cpp '#include "backends/example/linear.h"' '#include "backends/example/average.h"'
edit backends/plugin/attest/attest_plugin.h 's/"op=gated_delta",/"op=gated_delta", "op=average",/'
touched "an operator"
add_format 10
touched "a format"

# A kernel that gets both wrong: the last query of a group alone is received, and there is one key too many.
cp -r backends/example backends/off
sed -i 's/example/off/g; s/Example/Off/g' backends/off/*
mv backends/off/example.cpp backends/off/off.cpp
edit backends/off/off.cpp 's/received += std::exp/received = std::exp/'
edit backends/off/average.h 's/static_cast<Real>(p_.key_length)/static_cast<Real>(p_.key_length + 1)/'

# Compiled to be compiled fast: everything includes what was changed.
python_environment
cmake -S . -B build -G Ninja ${example_alone/-DATTEST_TESTS=OFF/} -DATTEST_PYTHON=ON -DPython_EXECUTABLE="$work/venv/bin/python" -DATTEST_UNITY=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
ninja -C build --quiet attest attest_python random_lines
attest=build/bin/attest
all='temperature=2 hidden_first=1,3 gate'
printf '%s\n' "heads=2 seq=8x12 dim=4 $all" "heads=2/1 seq=5 dim=4 gate causal" "heads=2 seq=9x33 dim=4 hidden_first=0,7 out=o,lse" \
  "batch=2 heads=4/2 seq=5x7 dim=4/3 causal align=bottom-right softcap=2 out=o,received" "heads=2/1 seq=3x4 dim=2 mask=bool:BHQK:random(0.3) fill=spread(88) out=received" \
  "dtype=f16 heads=4/2 seq=65x33 dim=8 out=o,received" "op=average batch=2 heads=4/2 seq=5x7 dim=4/3 scale=3" "op=average dtype=f64 seq=33 dim=16" \
  "op=average dtype=bf16 heads=2/1 seq=9x65 dim=8 fill=uniform out.layout=blhd" >"$work/new.cases"

# list; one row each.
$attest list options >"$work/options"
for key in temperature hidden_first gate; do grep -q "^$key[ =]" "$work/options" || fail "list does not have $key"; done
for word in received '|average'; do grep -qF -- "$word" "$work/options" || fail "list does not have $word"; done
# check, with and without isolation: the line comes back as it was.
for how in "" --isolate; do
  $attest check --backend example --bitwise $how --suite-file "$work/new.cases" --json "$work/new.jsonl" >"$work/log" || { cat "$work/log" >&2; fail "check $how"; }
  grep -qF "\"case\":\"heads=2 seq=8x12 dim=4 $all\"" "$work/new.jsonl" || fail "the line is not printed as it was given"
done
for wrong in "seq=4 dim=4 temperature=-1" "heads=2 seq=4 dim=4 hidden_first=1" "op=linear seq=4 dim=4 gate" "seq=4 dim=4 gate=1" "seq=4 dim=4 temprature=1" \
  "op=linear seq=4 dim=4 out=o,received" "batch=2 seq=4 dim=4 lengths=3,4 layout=thd out=received" "op=average seq=4 dim=4 causal" "op=average seq=4 dim=4 out=o,lse" \
  "op=average seq=4 dim=4 pass=backward"; do
  status=0
  $attest check --backend example "$wrong" >/dev/null 2>&1 || status=$?
  [ "$status" = 2 ] || fail "$wrong: exit code $status, not 2"
done
# An older kernel refuses them with a sentence, and by name of the first.
$attest check --backend old --suite-file "$work/new.cases" --json "$work/old.jsonl" >/dev/null 2>&1 || true
grep -q '"status":"refused","reason":"temperature: came with version 10 of the contract, and the backend was written for version 9"' "$work/old.jsonl" ||
  fail "an old backend does not refuse a new option"
for line in "seq=4 dim=4 out=o,received" "op=average seq=4 dim=4"; do
  $attest check --backend old "$line" --json "$work/old.jsonl" >/dev/null 2>&1 || true
  grep -q '"status":"refused","reason":"[a-z]*: came with version 10 of the contract' "$work/old.jsonl" || fail "an old backend does not refuse $line"
done
$attest check --backend old "heads=2 seq=8x12 dim=4" >/dev/null || fail "an old backend refuses what it knows"
# A plug-in of the contract before doesn't get them. One of this contract gets the tensor, which it refuses unless it knows the
# word; of numbers and lists it can't be told.
build_plugin() { cc -std=c11 -fPIC -shared -I backends/plugin "$work/$1.c" -lm -o "$work/lib$1.so"; }
refused() { # PLUG-IN LINE REASON
  $attest check --plugin "$work/lib$1.so" "$2" --json "$work/$1.jsonl" >/dev/null 2>&1 || true
  grep -qF "\"status\":\"refused\",\"reason\":\"$3" "$work/$1.jsonl" || fail "the plug-in $1: $(tail -n 1 "$work/$1.jsonl")"
}
cp backends/plugin/examples/c/example_c.c "$work/older.c"
sed 's/contract = 4/contract = 10/' "$work/older.c" >"$work/younger.c"
sed 's/"softcap", /"softcap", "gate", /' "$work/younger.c" >"$work/knowing.c"
put "$work/knowing.c" 'if (!p->mask) return 1;' '  const attest_tensor* gate = attest_find(p->in, "gate");
  if (gate && element(gate, b, h / (c->query_heads / c->key_heads), j, 0) < 0) return 0;'
for name in older younger knowing; do build_plugin "$name"; done
gate="heads=2/1 seq=5 dim=4 gate causal"
refused older "$gate" "gate: came with version 10 of the contract, and the backend was written for version 4"
refused younger "$gate" "gate: not supported"
$attest check --plugin "$work/libknowing.so" "$gate" "heads=2 seq=8x12 dim=4 gate" >"$work/log" || { cat "$work/log" >&2; fail "a plug-in with the tensor"; }
for option in temperature=2 hidden_first=0,3; do
  refused knowing "heads=2 seq=9x33 dim=4 $option" "${option%=*}: version 2 of the plug-in interface has no member for it"
done
$attest check --plugin "$work/libyounger.so" "heads=2 seq=8x12 dim=4" >/dev/null || fail "a plug-in refuses what it knows"
refused older "seq=4 dim=4 out=o,received" "out: came with version 10"
refused younger "seq=4 dim=4 out=o,received" "out=received: not supported"
refused older "op=average seq=4 dim=4" "op: came with version 10"
refused younger "op=average seq=4 dim=4" "op=average: not supported"
# What is wrong in a result that keys number names its key; both mistakes are made small.
wrong() { # LINE PATTERN
  for how in "" --isolate; do
    status=0
    $attest check --backend off "$1" $how >"$work/log" || status=$?
    [ "$status" = 1 ] && grep -qE "$2" "$work/log" || { cat "$work/log" >&2; fail "off $how is not caught: $1"; }
  done
  status=0
  $attest shrink "$1" --backend off >"$work/log" || status=$?
  [ "$status" = 1 ] && grep -qE "^(op=average )?seq=[12](x[12])? dim=1" "$work/log" || { cat "$work/log" >&2; fail "shrink $1"; }
}
wrong "batch=2 heads=4/2 seq=5x7 dim=4 out=o,received" 'received\[[01],[01],key [0-6],0\]'
wrong "op=average batch=2 heads=4/2 seq=5x7 dim=4" 'o\[[01],[0-3],[0-4],[0-3]\]'
for line in "seq=4 dim=4 out=o,received" "op=average seq=4 dim=4"; do
  $attest check --backend deaf "$line" >/dev/null 2>&1 && fail "a kernel that does not know it passes: $line"
done
status=0
$attest fuzz --backend off --time 60s --count 300 --seed 2 >"$work/log" || status=$?
[ "$status" = 1 ] && grep -qE "attest check --backend off '.*(received|average)" "$work/log" || { cat "$work/log" >&2; fail "fuzz finds nothing wrong in off"; }
# A kernel that ignores them is caught and its case made small; what is left names one of them.
status=0
$attest shrink "heads=2 seq=8x12 dim=4 softcap=2 hidden_first=3,5 gate fill=uniform" --backend deaf >"$work/log" || status=$?
[ "$status" = 1 ] && grep -qE "^seq=1x?[12]? dim=1 .*(hidden_first|gate)" "$work/log" || { cat "$work/log" >&2; fail "shrink"; }
grep -q softcap <(sed -n '/^$/,$p' "$work/log") && fail "shrink kept what does not matter"
status=0
$attest fuzz --backend deaf --time 60s --count 300 --seed 2 >"$work/log" || status=$?
[ "$status" = 1 ] && grep -qE "repro|attest check --backend deaf '.*(hidden_first|gate)" "$work/log" || { cat "$work/log" >&2; fail "fuzz finds nothing"; }
$attest fuzz --backend example --time 60s --count 300 --seed 2 >"$work/log" || { cat "$work/log" >&2; fail "fuzz accuses the kernel that has them"; }
# Random lines have them.
build/tests/random_lines 300 5 >"$work/lines"
for key in temperature= hidden_first= 'gate\b' out=.*received; do grep -q " $key" "$work/lines" || fail "no random line has $key"; done
grep -q ^op=average "$work/lines" || build/tests/random_lines 3000 5 | grep -q ^op=average || fail "no random line has op=average"
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
# A file says the operator and the result in its metadata.
for options in 'op=average' 'out=o,received'; do
  header="{\"__metadata__\":{\"options\":\"$options\"},$(tensor q 1,1,2,1 0 8),$(tensor k 1,1,4,1 8 24),$(tensor v 1,1,4,1 24 40)}"
  size=${#header}
  {
    printf "\\x$(printf %02x $((size % 256)))\\x$(printf %02x $((size / 256)))\\0\\0\\0\\0\\0\\0%s" "$header"
    printf "$one$two$one$two$one$one$one$one$two$one"
  } >"$work/new.safetensors"
  $attest check "$work/new.safetensors" --backend example >"$work/log" || { cat "$work/log" >&2; fail "a file with $options"; }
  status=0
  $attest check "$work/new.safetensors" --backend off >"$work/log" || status=$?
  [ "$status" = 1 ] || { cat "$work/log" >&2; fail "off is right with a file of $options"; }
done
check_format old "$work/younger.c"
check_python build
echo "new_options: $(wc -l <"$work/new.cases") lines, nothing of the harness edited"
