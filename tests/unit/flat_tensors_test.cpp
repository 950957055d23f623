#include "harness/backends/plugin/flat_tensors.h"

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "backends/plugin/attest/attest_plugin.hpp"
#include "harness/backends/plugin/flat_call.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

// The interface's tensor is DLPack's, member by member.
#define ATTEST_SAME_PLACE(ours, theirs)                                        \
  static_assert(offsetof(attest_tensor, ours) == offsetof(DLTensor, theirs) && \
                sizeof(std::declval<attest_tensor>().ours) == sizeof(std::declval<DLTensor>().theirs))
ATTEST_SAME_PLACE(data, data);
ATTEST_SAME_PLACE(device, device);
ATTEST_SAME_PLACE(ndim, ndim);
ATTEST_SAME_PLACE(dtype, dtype);
ATTEST_SAME_PLACE(shape, shape);
ATTEST_SAME_PLACE(strides, strides);
ATTEST_SAME_PLACE(byte_offset, byte_offset);
#undef ATTEST_SAME_PLACE
static_assert(sizeof(attest_tensor) == sizeof(DLTensor) && sizeof(attest_data_type) == sizeof(DLDataType));
static_assert(offsetof(attest_data_type, bits) == offsetof(DLDataType, bits) &&
              offsetof(attest_data_type, lanes) == offsetof(DLDataType, lanes));
static_assert(int{ATTEST_DEVICE_CPU} == int{kDLCPU} && int{ATTEST_CODE_INT} == int{kDLInt} &&
              int{ATTEST_CODE_UINT} == int{kDLUInt} && int{ATTEST_CODE_FLOAT} == int{kDLFloat} &&
              int{ATTEST_CODE_BFLOAT} == int{kDLBfloat});

template <class View>
void expect_same(const View& a, const View& b, const std::string& what) {
  EXPECT_EQ(a.data, b.data) << what;
  EXPECT_EQ(a.dtype, b.dtype) << what;
  EXPECT_EQ(a.shape, b.shape) << what;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (a.shape[axis] == 1) continue;  // no step is ever taken there
    EXPECT_EQ(a.strides[axis], b.strides[axis]) << what;
  }
  ASSERT_EQ(a.starts == nullptr, b.starts == nullptr) << what;
  for (std::int64_t n = 0; a.starts && n <= a.shape[0]; ++n) EXPECT_EQ(a.starts[n], b.starts[n]) << what;
}

/// There and back, through what a plug-in in C++ sees.
void expect_carried(const std::string& line) {
  const Problem problem = parse_case(line);
  const CaseInputs made = make_inputs(problem);
  const Inputs in = made.views();
  FlatTensors flat(sizeof(attest_tensors));
  const Inputs back = plugin::views_of<Inputs>(*flat.set(in), problem);
  for (const TensorRow& row : tensor_rows()) {
    if (is_output(row.id)) continue;
    ASSERT_EQ(in.has(row.id), back.has(row.id)) << line << ": " << row.name;
    if (in.has(row.id)) expect_same(in.at(row.id), back.at(row.id), line + ": " + std::string(row.name));
  }
}

TEST(FlatTensors, CarryEveryKindOfInput) {
  expect_carried("batch=2 heads=4/2 seq=3x5 dim=4/6 q.strides=200,50,8,2 k.offset=3");
  expect_carried("batch=2 seq=3x5 dim=4 mask=bool:B11K:random(0.5) blocks=2x2:random(0.5)");
  expect_carried("batch=2 seq=3x5 dim=4 mask=add:11QK:normal mask.dtype=f64 dtype=f16 align=top-left alibi sinks");
  expect_carried("batch=2 heads=2 seq=3x5 dim=4 lengths=q:2,3/k:5,1 layout=thd dtype=bf16");
  expect_carried("batch=2 seq=3x9 dim=4 lengths=9,2 paged=4");
  expect_carried("seq=3x5 dim=4 q.dtype=i8 k.dtype=e4m3 v.dtype=e5m2");
  expect_carried("batch=2 seq=3x9 dim=4 past=5 dtype=f64 dropout=0.5");
  expect_carried("op=gated_delta heads=4/2 seq=6 dim=4 state decay=head beta=one");
}

TEST(FlatTensors, AreWhatDlpackSays) {
  const Problem problem = parse_case("batch=2 heads=3 seq=4x5 dim=6 dtype=bf16 mask=bool:BHQK:random(0.5) layout=blhd");
  const CaseInputs made = make_inputs(problem);
  FlatTensors flat(sizeof(attest_tensors));
  const attest_tensors* in = flat.set(made.views());
  const auto* k = reinterpret_cast<const DLTensor*>(attest_find(in, "k"));
  EXPECT_EQ(k->data, made.views().k().data);
  EXPECT_EQ(k->ndim, 4);
  EXPECT_EQ(k->dtype.code, kDLBfloat);
  EXPECT_EQ(k->dtype.bits, 16);
  EXPECT_EQ(k->dtype.lanes, 1);
  EXPECT_EQ(k->shape[2], 5);
  EXPECT_EQ(k->strides[1], 6);
  EXPECT_EQ(k->strides[2], 18);
  EXPECT_EQ(attest_find(in, "mask")->dtype.code, ATTEST_CODE_UINT);
  EXPECT_EQ(attest_find(in, "mask")->dtype.bits, 8);
  EXPECT_EQ(attest_find(in, "decay"), nullptr);
  EXPECT_EQ(attest_find(in, "past_k"), nullptr);
}

/// Rows are one axis: nothing that DLPack's extents say lies outside the storage.
TEST(FlatTensors, PackedRowsAreOneAxis) {
  const Problem problem = parse_case("batch=2 heads=3 seq=4 dim=6 lengths=q:2,3/k:4,1 layout=thd");
  const CaseInputs made = make_inputs(problem);
  FlatTensors flat(sizeof(attest_tensors));
  const attest_tensors* in = flat.set(made.views());
  for (const char* role : {"q", "k"}) {
    const std::int64_t* shape = attest_find(in, role)->shape;
    EXPECT_EQ(std::vector(shape, shape + 4), (std::vector<std::int64_t>{1, 3, 5, 6})) << role;
  }
  EXPECT_EQ(std::vector(in->query_starts, in->query_starts + 3), (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_EQ(std::vector(in->key_starts, in->key_starts + 3), (std::vector<std::int64_t>{0, 4, 5}));
}

TEST(FlatTensors, CarryEveryOutput) {
  for (const char* line :
       {"batch=2 heads=2 seq=3x5 dim=4 out=o,lse,weights,raw,capped,biased", "seq=3x5 dim=4 past=2 out=o,present",
        "op=linear seq=3 dim=4 out=o,present", "batch=2 seq=3 dim=4 lengths=3,1 layout=thd out=o,lse"}) {
    const Problem problem = parse_case(line);
    GuardedOutputs guarded(problem);
    const Outputs out = guarded.views();
    FlatTensors flat(sizeof(attest_tensors));
    const Outputs back = plugin::views_of<Outputs>(*flat.set(out), problem);
    for (const TensorRow& row : tensor_rows()) {
      if (!is_output(row.id)) continue;
      ASSERT_EQ(out.has(row.id), back.has(row.id)) << line << ": " << row.name;
      if (out.has(row.id)) expect_same(out.at(row.id), back.at(row.id), line + (": " + std::string(row.name)));
    }
  }
}

}  // namespace
}  // namespace attest
