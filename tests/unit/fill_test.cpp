// Data are a function of the case line: every fill in every type keeps its bits for all time, on every machine.
#include "harness/cases/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::string hex(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t digit = 2 * bytes; digit-- > 0;) text += "0123456789abcdef"[(value >> (4 * digit)) & 15];
  return text;
}

/// Bits of a tensor's elements in the order of their indices, wherever they lie.
std::vector<std::uint64_t> bits_of(const ConstTensor& tensor) {
  std::vector<std::uint64_t> all;
  const std::size_t size = size_of(tensor.dtype);
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b) {
    for (std::int64_t h = 0; h < tensor.shape[1]; ++h) {
      for (std::int64_t l = 0; l < tensor.shape[2]; ++l) {
        for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
          std::uint64_t bits = 0;
          const auto at = static_cast<std::size_t>(tensor.offset(b, h, l, d)) * size;
          std::memcpy(&bits, static_cast<const std::byte*>(tensor.data) + at, size);
          all.push_back(bits);
        }
      }
    }
  }
  return all;
}

/// A hash of all the words (FNV-1a), in hexadecimal.
std::string hash_of(const std::vector<std::uint64_t>& words) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint64_t word : words) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((word >> shift) & 0xff)) * 0x100000001b3u;
  }
  return hex(hash, 8);
}

/// A hash of all the tensors' bits, then the second element of each: the first is often 0.
std::string pin_of(const std::vector<ConstTensor>& tensors) {
  std::vector<std::uint64_t> words;
  std::string second;
  for (const ConstTensor& tensor : tensors) {
    const std::vector<std::uint64_t> bits = bits_of(tensor);
    words.insert(words.end(), bits.begin(), bits.end());
    second += " " + hex(bits.at(1), size_of(tensor.dtype));
  }
  return hash_of(words) + second;
}

std::string pin_of_data(const std::string& options) {
  const CaseInputs inputs = make_inputs(parse_case("batch=2 heads=4/2 seq=5x7 dim=6/3 seed=7 " + options));
  return pin_of({inputs.at(TensorId::q).view(), inputs.at(TensorId::k).view(), inputs.at(TensorId::v).view()});
}

struct Pin {
  const char *options, *bits;
};

/// Of a fill in every type: a hash of all bits, then the second element of q in each.
std::string pin_of_types(const std::function<std::vector<ConstTensor>(const std::string& dtype)>& tensors_in) {
  std::vector<std::uint64_t> words;
  std::string second;
  for (const DType type : kWideTypes) {
    const std::vector<ConstTensor> tensors = tensors_in(std::string(name_of(type)));
    for (const ConstTensor& tensor : tensors) {
      const std::vector<std::uint64_t> bits = bits_of(tensor);
      words.insert(words.end(), bits.begin(), bits.end());
    }
    second += " " + hex(bits_of(tensors.front()).at(1), size_of(type));
  }
  return hash_of(words) + second;
}

/// Each fill has a pin, by its name before a bracket.
void expect_all_pinned(std::span<const Pin> pins, std::span<const FillName> fills) {
  std::set<std::string> pinned;
  for (const Pin& pin : pins) pinned.insert(std::string(pin.options).substr(0, std::string(pin.options).find('(')));
  for (const FillName& fill : fills) EXPECT_TRUE(pinned.contains(std::string(fill.name))) << fill.name;
}

constexpr Pin kTensorPins[] = {
    {"normal", "2e6aaa18887efb23 c000002800000000 c0000140 c000 c000"},
    {"uniform", "0bf8b03ccce54f8e 3fc60d238e9ca1b8 3e30691c 3183 3e30"},
    {"spread(88)", "f68691c97d7841d5 c02a88b4e91be12e c15445a7 caa2 c154"},
    {"ties", "f8a3656eed20ee16 bff0000000000000 bf800000 bc00 bf80"},
    {"onehot", "4ca28d35f15694d6 0000000000000000 00000000 0000 0000"},
    {"constant(0.3)", "0549040c3315198d 3fd3333333333333 3e99999a 34cd 3e9a"},
    {"denormal", "4e5e7604259579fc 8000000002000500 80000400 8040 8010"},
    {"huge", "de38ab684b38202b df40002800000000 dd800140 f400 dd80"},
    {"integer", "b7bd21cadfbcde48 c010000000000000 c0800000 c400 c080"},
    {"cancel", "3b6ba71d05d7e8c4 c04e300000000000 c2718000 d38c c272"},
    {"mixed", "739a174ca9abfabe 8000000002000500 80000400 8040 8010"},
    {"infinite(0.1)", "e8f4cf36fafbee02 c000002800000000 c0000140 c000 c000"},
    {"largest(0.3)", "f1ce8118f87bda1f c000002800000000 c0000140 fbff c000"},
    {"activations", "f91923db2644e57a bfdbf9749c128244 bedfcba5 b6fe bee0"},
};

TEST(Fill, EveryFillInEveryTypeKeepsItsBits) {
  for (const auto& [fill, bits] : kTensorPins) {
    CaseInputs inputs;
    EXPECT_EQ(pin_of_types([&, &fill = fill](const std::string& type) {
                inputs =
                    make_inputs(parse_case("batch=2 heads=4/2 seq=5x7 dim=6/3 seed=7 dtype=" + type + " fill=" + fill));
                return std::vector<ConstTensor>{inputs.at(TensorId::q).view(), inputs.at(TensorId::k).view(),
                                                inputs.at(TensorId::v).view()};
              }),
              bits)
        << fill;
  }
  expect_all_pinned(kTensorPins, tensor_fills());
}

constexpr Pin kAdditivePins[] = {
    {"normal", "46d4fad7ef1fb980 bfdfc18000000000 befe0c00 b7f0 befe"},
    {"neginf(0.3)", "b69eb3cf8959fd9a bfdfc18000000000 befe0c00 b7f0 befe"},
    {"finitemin(0.3)", "6859df580f0fbb47 bfdfc18000000000 befe0c00 b7f0 befe"},
    {"band(2)", "7b6f62a7dcca80a5 0000000000000000 00000000 0000 0000"},
    {"large", "859eebc133831c38 c1cdcd6500000000 ce6e6b28 f753 ce6e"},
    {"nan(0.3)", "7fe3f4e685cfaac0 bfdfc18000000000 befe0c00 b7f0 befe"},
    {"nonfinite(0.3)", "c2fc6746f1fe5c1c bfdfc18000000000 befe0c00 b7f0 befe"},
    {"padding(0.3)", "34ea63b917ef904c 0000000000000000 00000000 0000 0000"},
    {"wide", "aae83cd136388938 c017938449d16f52 c0bc9c22 c5e5 c0bd"},
    {"tree(4)", "3a03af8dad0c2eb4 0000000000000000 00000000 0000 0000"},
    {"spans(2)", "c71adbd6571e8fd4 0000000000000000 00000000 0000 0000"},
    {"chunks(2)", "01f8539e140ddc25 fff0000000000000 ff800000 fc00 ff80"},
};

TEST(Fill, EveryAdditiveMaskInEveryTypeKeepsItsBits) {
  for (const auto& [fill, bits] : kAdditivePins) {
    CaseInputs inputs;
    EXPECT_EQ(pin_of_types([&, &fill = fill](const std::string& type) {
                inputs = make_inputs(
                    parse_case("batch=2 heads=4/2 seq=5x7 dim=2 seed=7 mask.dtype=" + type + " mask=add:BHQK:" + fill));
                return std::vector<ConstTensor>{inputs.at(TensorId::mask).view()};
              }),
              bits)
        << fill;
  }
  expect_all_pinned(kAdditivePins, additive_mask_fills());
}

/// Rows of 0 and 1 of the first head, and a hash of all heads.
std::string pin_of_visibility(const std::string& fill) {
  const Problem p = parse_case("batch=2 heads=2 seq=3x8 dim=2 seed=7 mask=bool:BHQK:" + fill);
  const MaskFill mask(p);
  std::vector<std::uint64_t> all;
  std::string first;
  for (std::int64_t n = 0; n < 2 * 2 * 3 * 8; ++n) {
    all.push_back(mask.at(n / 48, n / 24 % 2, n / 8 % 3, n % 8) != 0);
    if (n < 24) first += std::string(n > 0 && n % 8 == 0 ? " " : "") + (all.back() != 0 ? "1" : "0");
  }
  return first + " " + hash_of(all);
}

constexpr Pin kBooleanPins[] = {
    {"random(0.5)", "10110011 00100010 10100011 132724da5ccd8864"},
    {"band(2)", "11100000 11110000 11111000 9a4574fe3740bfa5"},
    {"blocks(2)", "11000011 11000011 11111111 fecf408109f881c5"},
    {"rows(0.4)", "11111111 11111111 11111111 1888336080b91b25"},
    {"none", "00000000 00000000 00000000 9fa9e040e0eedf25"},
    {"all", "11111111 11111111 11111111 d32dcb7966f0f925"},
    {"tree(3)", "11111100 11111010 11111101 da2147d01ad11345"},
    {"spans(3)", "11111100 11111110 11111111 b5d4a589c719a925"},
    {"chunks(4)", "00001100 00001110 00001111 69b5705c6322d925"},
};

TEST(Fill, EveryBooleanMaskKeepsItsBits) {
  for (const auto& [fill, bits] : kBooleanPins) EXPECT_EQ(pin_of_visibility(fill), bits) << fill;
  expect_all_pinned(kBooleanPins, boolean_mask_fills());
}

TEST(Fill, MasksOfBlocksKeepTheirBits) {
  const CaseInputs inputs = make_inputs(parse_case("heads=2 seq=8x20 dim=2 seed=7 blocks=4x8:random(0.5)"));
  std::string blocks;
  const TensorBytes& bytes = inputs.at(TensorId::blocks).memory();
  for (std::size_t n = 0; n < bytes.size(); ++n) blocks += bytes.data()[n] != std::byte{0} ? "1" : "0";
  EXPECT_EQ(blocks, "101100110010");
}

/// Bits of numbers in double.
std::string doubles(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    text += (text.empty() ? "" : " ") + hex(bits, 8);
  }
  return text;
}

TEST(Fill, SlopesAndSinksKeepTheirBits) {
  const Problem wide = parse_case("dtype=f64 heads=3 seq=2 dim=2 seed=7 alibi sinks");
  const Problem narrow = parse_case("dtype=f16 heads=3 seq=2 dim=2 seed=7 alibi sinks");
  EXPECT_EQ(doubles(make_slopes(wide)), "3fb0000000000000 3f70000000000000 3fd0000000000000");
  EXPECT_EQ(doubles(make_slopes(narrow)), "3fb0000000000000 3f70000000000000 3fd0000000000000");
  EXPECT_EQ(doubles(make_sinks(wide)), "400ffb6000000000 3ffccd8000000000 c01396c000000000");
  EXPECT_EQ(doubles(make_sinks(narrow)), "400ffb6000000000 3ffccd8000000000 c01396c000000000");
}

TEST(Fill, PagesKeepTheirOrder) {
  const Problem p = parse_case("batch=2 seq=3x9 dim=2 seed=7 paged=2 lengths=9,5");
  EXPECT_EQ(make_page_table(p), (std::vector<std::int32_t>{7, 2, 0, 6, 3, 1, 4, 5, -1, -1}));
  EXPECT_EQ(extent_of(p, Axis::pages), 5);
}

constexpr Pin kLinearPins[] = {
    {"dtype=f64", "a807b3c61e52d691 3fcb259c5376e5c8 bfc8b27581e3ea70 3fede130ec88cc54 bfb5b5ef2bf39290"},
    {"dtype=f32", "80dce7e5e53be473 3e592ce3 be4593ac 3f6f0987 bdadaf79"},
    {"dtype=f16", "4926c2cd0ad7beea 32c9 b22d 3b78 ad6d"},
    {"dtype=bf16", "f6681aba09b6dfaf 3e59 be46 3f6f bdae"},
    {"dtype=f32 decay=head beta=one fill=uniform", "34923db59c7784a9 bd8a4671 be4593ac 3f6f0987 bdadaf79"},
    {"dtype=f64 decay.fill=wide beta.fill=wide state.fill=wide",
     "b4b861fbd897debf 3fcb259c5376e5c8 bfdce9b14fc382b2 3ffef0987644662a 3fc7525086a0636c"},
    {"dtype=bf16 decay.fill=wide beta.fill=wide state.fill=wide", "873198190248a5bb 3e59 bee7 3ff8 3e3b"},
};

/// Keys of about unit length, decay, beta and state.
TEST(Fill, TensorsOfLinearAttentionKeepTheirBits) {
  for (const auto& [options, bits] : kLinearPins) {
    const CaseInputs inputs =
        make_inputs(parse_case("op=gated_delta state batch=2 heads=4/2 seq=5 dim=6/3 seed=7 " + std::string(options)));
    std::vector<ConstTensor> tensors;
    for (const TensorId id : {TensorId::k, TensorId::decay, TensorId::beta, TensorId::state}) {
      ASSERT_TRUE(inputs.has(id));
      tensors.push_back(inputs.at(id).view());
    }
    EXPECT_EQ(pin_of(tensors), bits) << options;
  }
}

/// Results and logsumexps of the parts.
constexpr Pin kMergePins[] = {
    {"", "b340f9bbceac6cda 3ffd2400 3e5d4b9b"},
    {"parts=3:empty(0.4) poison=empty:o", "9e00d5ed4c86a74a 3ffd2400 3e5d4b9b"},
    {"base=2 fill=spread(88)", "71cc2146962cfe4f 3ffd2400 4285b330"},
    {"fill=ties", "a728f812b1afe2a5 40c00000 3f800000"},
    {"fill=onehot", "493d0cb80d7e6758 40c00000 00000000"},
    {"fill=cancel", "454873677669b29d 447a7e92 00000000"},
};

TEST(Fill, PartsOfAMergeKeepTheirBits) {
  for (const auto& [options, bits] : kMergePins) {
    const CaseInputs inputs =
        make_inputs(parse_case("op=merge batch=2 heads=2 seq=5 dim=3 seed=7 " + std::string(options)));
    EXPECT_EQ(pin_of({inputs.at(TensorId::part_o).view(), inputs.at(TensorId::part_lse).view()}), bits) << options;
  }
}

TEST(Fill, PoisonKeepsItsPlaces) {
  EXPECT_EQ(pin_of_data("align=top-left causal poison=hidden:kv"), "1b7dc74dff23ba66 c0000140 3f04fe00 3f4c0300");
  EXPECT_EQ(pin_of_data("poison=visible:kv"), "07d799a46f025660 c0000140 3f04fe00 3f4c0300");
}

TEST(Fill, DataDoNotDependOnTheLayoutOrTheType) {
  const std::string plain = pin_of_data("");
  for (const char* layout : {"layout=blhd", "layout=bld", "layout=kv", "q.offset=3 k.strides=160,80,11,1"}) {
    EXPECT_EQ(pin_of_data(layout), plain) << layout;
  }
  const CaseInputs wide = make_inputs(parse_case("dtype=f64 seq=5 dim=4 fill=normal"));
  const CaseInputs narrow = make_inputs(parse_case("dtype=bf16 seq=5 dim=4 fill=normal"));
  for (std::int64_t l = 0; l < 5; ++l) {
    const double exact = load(wide.at(TensorId::q).view().data, DType::f64, l),
                 rounded = load(narrow.at(TensorId::q).view().data, DType::bf16, l);
    EXPECT_NEAR(rounded, exact, std::fabs(exact) * 0x1p-8);
  }
}

}  // namespace
}  // namespace attest
