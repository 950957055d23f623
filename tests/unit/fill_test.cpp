// Data are a function of the case line: every fill in every type keeps its bits for all time, on every machine.
#include "harness/cases/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"
#include "reference/softmax/attention.h"

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

constexpr Pin kTensorPins[] = {
    {"dtype=f64 fill=normal", "be2146bab6f05dae c000002800000000 3fe09fc000000000 3fe9806000000000"},
    {"dtype=f64 fill=uniform", "f1e2de28ab63e47c 3fc60d238e9ca1b8 bfc52b41f197d768 3fe1fde3b6f7403c"},
    {"dtype=f64 fill=spread(88)", "58b9f65ec7580717 c02a88b4e91be12e 400b915cebfb0596 3fe9806000000000"},
    {"dtype=f64 fill=ties", "3fd0fe21e573efe0 bff0000000000000 3ff0000000000000 c000000000000000"},
    {"dtype=f64 fill=onehot", "d89101c4309adba0 0000000000000000 0000000000000000 c000000000000000"},
    {"dtype=f64 fill=constant(0.3)", "0159822b33a812e5 3fd3333333333333 3fd3333333333333 3fd3333333333333"},
    {"dtype=f64 fill=denormal", "9d9f11ba7627608e 8000000002000500 000000000084fe00 0000000000cc0300"},
    {"dtype=f64 fill=huge", "4fce39a6315619a7 df40002800000000 5f209fc000000000 5f29806000000000"},
    {"dtype=f64 fill=integer", "fbb813a4d19cee98 c010000000000000 4010000000000000 bff0000000000000"},
    {"dtype=f64 fill=cancel", "345ae538ed13cba4 c04e300000000000 c06497252e4fa800 408f466018000000"},
    {"dtype=f64 fill=mixed", "a030947d061cc8a1 8000000002000500 4010000000000000 3ea9806000000000"},
    {"dtype=f32 fill=normal", "76ae2b3da9bf6aea c0000140 3f04fe00 3f4c0300"},
    {"dtype=f32 fill=uniform", "737630b7a04fe738 3e30691c be295a10 3f0fef1e"},
    {"dtype=f32 fill=spread(88)", "ed7b312d27741b50 c15445a7 405c8ae7 3f4c0300"},
    {"dtype=f32 fill=ties", "c09bea3455ecbb98 bf800000 3f800000 c0000000"},
    {"dtype=f32 fill=onehot", "a4c8357a02fa4c38 00000000 00000000 c0000000"},
    {"dtype=f32 fill=constant(0.3)", "a6030b7e1c8fc8cd 3e99999a 3e99999a 3e99999a"},
    {"dtype=f32 fill=denormal", "7f260db1827af893 80000400 0000010a 00000198"},
    {"dtype=f32 fill=huge", "59057ffaf5111f78 dd800140 5c84fe00 5ccc0300"},
    {"dtype=f32 fill=integer", "346083e75fade9b8 c0800000 40800000 bf800000"},
    {"dtype=f32 fill=cancel", "4f228c83ea9f04f7 c2718000 c324b929 447a3301"},
    {"dtype=f32 fill=mixed", "163a241380567faf 80000400 40800000 354c0300"},
    {"dtype=f16 fill=normal", "7a6dd9801de62a65 c000 3828 3a60"},
    {"dtype=f16 fill=uniform", "86b2d82f98bc3205 3183 b14b 387f"},
    {"dtype=f16 fill=spread(88)", "8a490032142cba7a caa2 42e4 3a60"},
    {"dtype=f16 fill=ties", "78746f782eff49e7 bc00 3c00 c000"},
    {"dtype=f16 fill=onehot", "14ccfa9c4fdb58e7 0000 0000 c000"},
    {"dtype=f16 fill=constant(0.3)", "31a3d0b19ebe4325 34cd 34cd 34cd"},
    {"dtype=f16 fill=denormal", "d57a12ddd858bb94 8040 0011 001a"},
    {"dtype=f16 fill=huge", "a7e024737245f2b5 f400 6c28 6e60"},
    {"dtype=f16 fill=integer", "509bd167a19e02bd c400 4400 bc00"},
    {"dtype=f16 fill=cancel", "fd0ec1a9128f514d d38c d926 63d2"},
    {"dtype=f16 fill=mixed", "997b6e9be0132187 8040 4400 000d"},
    {"dtype=bf16 fill=normal", "5f668694cd7cf7bf c000 3f05 3f4c"},
    {"dtype=bf16 fill=uniform", "316dafc83ea7f58e 3e30 be29 3f10"},
    {"dtype=bf16 fill=spread(88)", "ffcd43a5a2f24a65 c154 405d 3f4c"},
    {"dtype=bf16 fill=ties", "ec09d03f8aa74be0 bf80 3f80 c000"},
    {"dtype=bf16 fill=onehot", "8e59e9ee80447380 0000 0000 c000"},
    {"dtype=bf16 fill=constant(0.3)", "e4f44c77a67c2f25 3e9a 3e9a 3e9a"},
    {"dtype=bf16 fill=denormal", "0e8dcaaab4ab6a7c 8010 0004 0006"},
    {"dtype=bf16 fill=huge", "b4062634148f421c dd80 5c85 5ccc"},
    {"dtype=bf16 fill=integer", "20288814b8d7a240 c080 4080 bf80"},
    {"dtype=bf16 fill=cancel", "39450d7eef1ab963 c272 c325 447a"},
    {"dtype=bf16 fill=mixed", "ce79270e6b4d98e2 8010 4080 354c"},
    {"dtype=f64 fill=infinite(0.1)", "5732639c61b86c96 c000002800000000 3fe09fc000000000 3fe9806000000000"},
    {"dtype=f32 fill=infinite(0.1)", "a57e622a0a92b2aa c0000140 3f04fe00 3f4c0300"},
    {"dtype=f16 fill=infinite(0.1)", "7c1c1f1b821da6bd c000 3828 3a60"},
    {"dtype=bf16 fill=infinite(0.1)", "c446a29d779532da c000 3f05 3f4c"},
    {"dtype=f64 fill=largest(0.3)", "942eaa0d1d3c097f c000002800000000 3fe09fc000000000 3fe9806000000000"},
    {"dtype=f32 fill=largest(0.3)", "09431475595419ee c0000140 3f04fe00 3f4c0300"},
    {"dtype=f16 fill=largest(0.3)", "b100dc13951c65f1 fbff 3828 3a60"},
    {"dtype=bf16 fill=largest(0.3)", "6f3feab98939ad5a c000 3f05 3f4c"},
};

TEST(Fill, EveryFillInEveryTypeKeepsItsBits) {
  std::set<std::string> pinned;
  for (const auto& [options, bits] : kTensorPins) {
    EXPECT_EQ(pin_of_data(options), bits) << options;
    const std::string text = options;
    pinned.insert(text.substr(0, text.find('(')));
  }
  for (const DType type : kFloatingTypes) {
    for (const FillName& fill : tensor_fills()) {
      EXPECT_TRUE(pinned.contains("dtype=" + std::string(name_of(type)) + " fill=" + std::string(fill.name)))
          << fill.name;
    }
  }
}

std::string pin_of_mask(const std::string& options) {
  return pin_of(
      {make_inputs(parse_case("batch=2 heads=4/2 seq=5x7 dim=2 seed=7 " + options)).at(TensorId::mask).view()});
}

constexpr Pin kAdditivePins[] = {
    {"mask.dtype=f64 mask=add:BHQK:normal", "dfcf7852633c2b4f bfdfc18000000000"},
    {"mask.dtype=f64 mask=add:BHQK:neginf(0.3)", "94bf89defb223e94 bfdfc18000000000"},
    {"mask.dtype=f64 mask=add:BHQK:finitemin(0.3)", "8f6df66b063a50b9 bfdfc18000000000"},
    {"mask.dtype=f64 mask=add:BHQK:band(2)", "05e003b97ec9a2a5 0000000000000000"},
    {"mask.dtype=f64 mask=add:BHQK:large", "26f1a0ac795bd3b8 c1cdcd6500000000"},
    {"mask.dtype=f32 mask=add:BHQK:normal", "004d3fbcb9db7458 befe0c00"},
    {"mask.dtype=f32 mask=add:BHQK:neginf(0.3)", "eed8225e4ec3f9a2 befe0c00"},
    {"mask.dtype=f32 mask=add:BHQK:finitemin(0.3)", "8f4bf3bf1425718b befe0c00"},
    {"mask.dtype=f32 mask=add:BHQK:band(2)", "9797bdddc11ef8a5 00000000"},
    {"mask.dtype=f32 mask=add:BHQK:large", "e9a4013dda8e82c7 ce6e6b28"},
    {"mask.dtype=f16 mask=add:BHQK:normal", "74f87620b5bc560e b7f0"},
    {"mask.dtype=f16 mask=add:BHQK:neginf(0.3)", "b4a0382d806ce0fb b7f0"},
    {"mask.dtype=f16 mask=add:BHQK:finitemin(0.3)", "5c43d033739131a1 b7f0"},
    {"mask.dtype=f16 mask=add:BHQK:band(2)", "9a062188ec4d6525 0000"},
    {"mask.dtype=f16 mask=add:BHQK:large", "a0860bbe6ec17288 f753"},
    {"mask.dtype=bf16 mask=add:BHQK:normal", "3f3bc6a14828c9fc befe"},
    {"mask.dtype=bf16 mask=add:BHQK:neginf(0.3)", "aee45ff6aa71d96a befe"},
    {"mask.dtype=bf16 mask=add:BHQK:finitemin(0.3)", "a851f345639982d1 befe"},
    {"mask.dtype=bf16 mask=add:BHQK:band(2)", "60279f75ac316da5 0000"},
    {"mask.dtype=bf16 mask=add:BHQK:large", "0e0d9e6f2b2ac246 ce6e"},
    {"mask.dtype=f64 mask=add:BHQK:nan(0.3)", "12b623d7c5a8f8fc bfdfc18000000000"},
    {"mask.dtype=f64 mask=add:BHQK:nonfinite(0.3)", "47fac413ca06231c bfdfc18000000000"},
    {"mask.dtype=f32 mask=add:BHQK:nan(0.3)", "787b6ed0c9bad9e2 befe0c00"},
    {"mask.dtype=f32 mask=add:BHQK:nonfinite(0.3)", "b09213cb46a221e2 befe0c00"},
    {"mask.dtype=f16 mask=add:BHQK:nan(0.3)", "1d6d29beb8c3c3c1 b7f0"},
    {"mask.dtype=f16 mask=add:BHQK:nonfinite(0.3)", "f0badc50c95b907d b7f0"},
    {"mask.dtype=bf16 mask=add:BHQK:nan(0.3)", "2b0a929c04b268aa befe"},
    {"mask.dtype=bf16 mask=add:BHQK:nonfinite(0.3)", "f775170437a02a2a befe"},
    {"mask.dtype=f64 mask=add:BHQK:padding(0.3)", "08cf4c805574c196 0000000000000000"},
    {"mask.dtype=f64 mask=add:BHQK:wide", "4ecd26da84afaa11 c017938449d16f52"},
    {"mask.dtype=f32 mask=add:BHQK:padding(0.3)", "72cd8dccc218ffaf 00000000"},
    {"mask.dtype=f32 mask=add:BHQK:wide", "967e8c03af0491f7 c0bc9c22"},
    {"mask.dtype=f16 mask=add:BHQK:padding(0.3)", "997a333d9e143997 0000"},
    {"mask.dtype=f16 mask=add:BHQK:wide", "650cca43e45c47c6 c5e5"},
    {"mask.dtype=bf16 mask=add:BHQK:padding(0.3)", "35b6a00f9e40d38f 0000"},
    {"mask.dtype=bf16 mask=add:BHQK:wide", "a07ff3c14b6874cd c0bd"},
};

TEST(Fill, EveryAdditiveMaskInEveryTypeKeepsItsBits) {
  std::set<std::string> pinned;
  for (const auto& [options, bits] : kAdditivePins) {
    EXPECT_EQ(pin_of_mask(options), bits) << options;
    const std::string text = options;
    pinned.insert(text.substr(0, text.find('(')));
  }
  for (const DType type : kFloatingTypes) {
    for (const FillName& fill : additive_mask_fills()) {
      const std::string options =
          "mask.dtype=" + std::string(name_of(type)) + " mask=add:BHQK:" + std::string(fill.name);
      EXPECT_TRUE(pinned.contains(options)) << options;
    }
  }
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
};

TEST(Fill, EveryBooleanMaskKeepsItsBits) {
  std::set<std::string> pinned;
  for (const auto& [fill, bits] : kBooleanPins) {
    EXPECT_EQ(pin_of_visibility(fill), bits) << fill;
    const std::string text = fill;
    pinned.insert(text.substr(0, text.find('(')));
  }
  for (const FillName& fill : boolean_mask_fills()) EXPECT_TRUE(pinned.contains(std::string(fill.name))) << fill.name;
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

/// Values of an additive mask of 4,000 elements.
std::vector<double> mask_values(const std::string& type, const std::string& fill) {
  const Problem p = parse_case("dtype=" + type + " seq=1x4000 dim=1 mask=add:111K:" + fill);
  const CaseInputs inputs = make_inputs(p);
  std::vector<double> values;
  for (std::int64_t j = 0; j < 4000; ++j)
    values.push_back(load(inputs.at(TensorId::mask).view().data, type_of(p, TensorId::mask), j));
  return values;
}

TEST(Fill, PaddingIsWhatModelsWrite) {
  for (const char* type : {"f64", "f32", "f16"}) {
    const std::vector<double> values = mask_values(type, "padding(0.25)");
    EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-10000, 0})) << type;
    EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), -10000)), 1000, 100) << type;
  }
}

/// As many numbers below 1 as a magnitude that is spread evenly over its exponents gives, and as many of each sign.
TEST(Fill, WideMasksHaveEveryMagnitudeAndBothSigns) {
  const std::vector<double> values = mask_values("f32", "wide");
  const auto share = [&](auto holds) {
    return static_cast<double>(std::count_if(values.begin(), values.end(), holds)) / 4000;
  };
  EXPECT_NEAR(share([](double x) { return x > 0; }), 0.5, 0.05);
  EXPECT_NEAR(share([](double x) { return std::fabs(x) < 1; }), 0.5, 0.05);
  EXPECT_GT(share([](double x) { return x > 10; }), 0.1);
  EXPECT_EQ(share([](double x) { return std::fabs(x) >= 1024 || std::fabs(x) < 0x1p-10; }), 0);
}

TEST(Fill, WideInputsOfLinearAttentionStayInTheirRange) {
  const CaseInputs inputs = make_inputs(
      parse_case("dtype=f64 op=gated_delta state seq=60 dim=8 decay.fill=wide beta.fill=wide state.fill=wide"));
  const auto bounds_of = [&](TensorId id) {
    double least = kInfinity, most = -kInfinity;
    const ConstTensor view = inputs.at(id).view();
    each_index(view.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const double x = load(view.data, view.dtype, view.offset(b, h, l, d));
      least = std::min(least, x);
      most = std::max(most, x);
    });
    return std::pair(least, most);
  };
  const auto [decay_least, decay_most] = bounds_of(TensorId::decay);
  EXPECT_LT(decay_least, -200);
  EXPECT_LT(decay_most, 0);
  EXPECT_GT(decay_most, -0.01);
  const auto [beta_least, beta_most] = bounds_of(TensorId::beta);
  EXPECT_GT(beta_least, 0);
  EXPECT_LT(beta_most, 2);
  const auto [state_least, state_most] = bounds_of(TensorId::state);
  EXPECT_LT(state_least, -100);
  EXPECT_GT(state_most, 100);
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

TEST(Fill, NormalNumbersHaveMeanZeroAndVarianceOne) {
  const TensorFill fill(parse_case("seq=100 dim=100 seed=7"), TensorId::k);
  double sum = 0, squares = 0;
  for (int l = 0; l < 100; ++l) {
    for (int d = 0; d < 100; ++d) {
      const double x = fill.at(0, 0, l, d);
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.05);
}

TEST(Fill, SpreadGivesScoresOfThatSize) {
  const Problem p = parse_case("seq=200 dim=64 fill=spread(88)");
  const CaseInputs inputs = make_inputs(p);
  Row row;
  const Inputs views = inputs.views();
  Head(p, views, 0, 0).attend(0, row);
  double largest = 0;
  for (const double s : row.raw) largest = std::max(largest, std::fabs(s));
  EXPECT_GT(largest, 60);
  EXPECT_LT(largest, 300);
}

}  // namespace
}  // namespace attest
