// Storage in 4 bits, two elements to a byte: where they lie, what is refused, and how files hold them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "harness/cases/case_file.h"
#include "harness/cases/option_values.h"
#include "harness/cases/other_data.h"
#include "harness/cases/safetensors.h"
#include "harness/speed/trust/column_signs.h"
#include "reference/base/view.h"
#include "reference/options/find_fault.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

double code_of(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  return load(t.data, t.dtype, t.offset(b, h, l, d));
}

/// Numbers from -8 to 7 by their place.
double numbered(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  return static_cast<double>((5 * b + 3 * h + 7 * l + d) % 16 - 8);
}

TEST(Pairs, LieWhereStridesAndLayoutsSay) {
  for (const std::string more :
       {"", "layout=blhd", "k.strides=160,80,16,1", "k.strides=0,0,8,1", "k.offset=6", "layout=thd lengths=5,2"}) {
    const Problem p = parse_case("batch=2 heads=2 seq=5 dim=8 k.dtype=i4 " + more);
    CaseInputs inputs = make_inputs(p);
    TensorStorage& keys = inputs.at(TensorId::k);
    const bool is_shared = more.find("=0,0") != std::string::npos;
    const auto value = [&](auto b, auto h, auto l, auto d) {
      return is_shared ? numbered(0, 0, l, d) : numbered(b, h, l, d);
    };
    each_index(keys.shape(), [&](auto b, auto h, auto l, auto d) {
      if (l < keys.place().rows(b)) keys.set(b, h, l, d, value(b, h, l, d));
    });
    const ConstTensor view = keys.view();
    each_index(keys.shape(), [&](auto b, auto h, auto l, auto d) {
      if (l >= keys.place().rows(b)) return;
      EXPECT_EQ(code_of(view, b, h, l, d), value(b, h, l, d)) << more;
    });
    EXPECT_EQ(keys.bytes(), static_cast<std::size_t>(*keys.place().elements + 1) / 2) << more;
  }
}

TEST(Pairs, HalveTheBytesOfACache) {
  const auto bytes = [](const std::string& type) {
    const CaseInputs inputs = make_inputs(parse_case("batch=2 seq=1x9 dim=8 past=4 k.dtype=" + type));
    return std::vector<std::size_t>{inputs.at(TensorId::k).bytes(), inputs.at(TensorId::past_k).bytes()};
  };
  EXPECT_EQ(bytes("i8"), (std::vector<std::size_t>{80, 64}));
  EXPECT_EQ(bytes("e2m1"), (std::vector<std::size_t>{40, 32}));
  const CaseInputs inputs = make_inputs(parse_case("batch=2 seq=1x9 dim=8 k.dtype=e2m1"));
  EXPECT_EQ(span_bytes(inputs.at(TensorId::k).view()), 72U);
}

TEST(Pairs, RefuseRowsThatBeginWithinAByte) {
  const auto complaint_of = [](const std::string& line) {
    return complaint<CaseError>([&] { parse_case("seq=4 " + line); });
  };
  EXPECT_EQ(complaint_of("dim=4/3 q.dtype=e2m1 k.dtype=i4"), "");
  EXPECT_EQ(complaint_of("dim=4/3 v.dtype=i4").substr(0, 5), "dim: ") << complaint_of("dim=4/3 v.dtype=i4");
  EXPECT_EQ(complaint_of("dim=3/4 k.dtype=e2m1").substr(0, 5), "dim: ");
  EXPECT_EQ(complaint_of("dim=4 k.dtype=i4 k.offset=3").substr(0, 10), "k.offset: ");
  EXPECT_EQ(complaint_of("dim=4 k.dtype=i4 k.strides=16,16,5,1").substr(0, 11), "k.strides: ");
  EXPECT_EQ(complaint_of("dim=4 k.dtype=i4 k.strides=16,15,4,1").substr(0, 11), "k.strides: ");
  EXPECT_EQ(complaint_of("dim=4 k.dtype=i4 k.strides=32,32,8,2").substr(0, 11), "k.strides: ");
  EXPECT_EQ(complaint_of("dim=5/2 k.dtype=i4 latent latent.parts=apart").substr(0, 5), "dim: ");
  EXPECT_EQ(complaint_of("dim=4/2 k.dtype=i4 latent latent.parts=apart"), "");
  EXPECT_NE(complaint_of("dim=4 out.dtype=i4"), "");
  EXPECT_NE(complaint_of("dim=4 k.dtype=i4 append").find("16 bits"), std::string::npos);
}

TEST(Pairs, AreFittedToWhatTheyNeed) {
  Problem p = parse_case("seq=4 dim=3/5 k.strides=60,60,5,1 k.offset=3");
  p.call.tensor(TensorId::k).dtype = p.call.tensor(TensorId::v).dtype = DType::i4;
  fit_to_sizes(p);
  EXPECT_EQ(p.call.key_dim, 4);
  EXPECT_EQ(p.call.value_dim, 6);
  EXPECT_FALSE(find_fault(p));
}

TEST(Pairs, ChangeWithOtherData) {
  const Problem p = parse_case("seq=1 dim=1/8 v.dtype=e2m1");
  CaseInputs inputs = make_inputs(p);
  TensorStorage& values = inputs.at(TensorId::v);
  const std::vector<double> before = {0, 0.5, 1, 1.5, 2, 3, -4, -6}, after = {0, -0.5, -0.5, -1.5, -1, -1.5, 2, 3};
  for (std::size_t d = 0; d < 8; ++d) values.set(0, 0, 0, static_cast<std::int64_t>(d), before[d]);
  change_data(p, inputs);
  for (std::size_t d = 1; d < 8; ++d)
    EXPECT_EQ(code_of(values.view(), 0, 0, 0, static_cast<std::int64_t>(d)), after[d]) << d;
}

TEST(Pairs, ChangeTheirSignsByColumns) {
  const Problem p = parse_case("heads=2 seq=1x3 dim=8 v.dtype=i4 v.strides=0,0,8,1");
  CaseInputs inputs = make_inputs(p);
  TensorStorage& values = inputs.at(TensorId::v);
  const auto value = [](std::int64_t l, std::int64_t d) { return static_cast<double>(1 + (l + d) % 7); };
  each_index(values.shape(), [&](auto b, auto h, auto l, auto d) { values.set(b, h, l, d, value(l, d)); });
  bool changed = false;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    CaseInputs copy = inputs;
    const ColumnSigns plain(p.call, 0), signs(p.call, seed);
    change_signs(copy, plain, signs);
    each_index(values.shape(), [&](auto b, auto h, auto l, auto d) {
      const bool negated = plain.negates(TensorId::v, d) != signs.negates(TensorId::v, d);
      changed = changed || negated;
      EXPECT_EQ(code_of(copy.at(TensorId::v).view(), b, h, l, d), negated ? -value(l, d) : value(l, d));
    });
  }
  EXPECT_TRUE(changed);
}

/// A file of one row of values, whose output they are.
TensorFile file_of_values(const std::string& type, std::int64_t width, const std::vector<std::byte>& bytes) {
  TensorFile file;
  const std::vector<std::byte> one = {std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3f}};
  file.tensors["q"] = file.tensors["k"] = {"F32", {1, 1}, one};
  file.tensors["v"] = {type, {1, width}, bytes};
  return file;
}

TEST(Pairs, OfFilesAreBytesThatTheMetadataName) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "pairs.safetensors";
  write_safetensors(path, file_of_values("I4", 4, {std::byte{0x8f}, std::byte{0x73}}));
  TensorFile read = read_safetensors(path);
  EXPECT_EQ(read.tensors.at("v").shape, (std::vector<std::int64_t>{1, 4}));
  EXPECT_TRUE(read.metadata.empty()) << "what the reader has understood";
  const Case source = case_from_tensors(read, "file");
  const ConstTensor values = source.inputs->views().v();
  EXPECT_EQ(values.dtype, DType::i4);
  const std::vector<double> wanted = {-1, -8, 3, 7};
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(code_of(values, 0, 0, 0, d), wanted[static_cast<std::size_t>(d)]);
  // Others see bytes.
  TensorFile plain = file_of_values("U8", 2, {std::byte{0x8f}, std::byte{0x73}});
  plain.metadata["int4"] = "v";
  write_safetensors(path, plain);
  EXPECT_EQ(read_safetensors(path).tensors.at("v").dtype, "I4");
  plain.metadata["int4"] = "v,w";
  write_safetensors(path, plain);
  EXPECT_NE(complaint<UserError>([&] { read_safetensors(path); }).find("\"w\" is no tensor of U8"), std::string::npos);
}

TEST(Pairs, OfE2m1HaveATypeInFiles) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "pairs.safetensors";
  write_safetensors(path, file_of_values("F4", 4, {std::byte{0x8f}, std::byte{0x73}}));
  const Case source = case_from_tensors(read_safetensors(path), "file");
  const ConstTensor values = source.inputs->views().v();
  const std::vector<double> wanted = {-6, 0, 1.5, 6};
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(code_of(values, 0, 0, 0, d), wanted[static_cast<std::size_t>(d)]);
  TensorFile odd = file_of_values("F4", 3, {std::byte{0x8f}});
  write_safetensors(path, odd);
  EXPECT_NE(complaint<UserError>([&] { read_safetensors(path); }).find("odd number"), std::string::npos);
}

}  // namespace
}  // namespace attest
