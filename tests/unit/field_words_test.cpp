// Words of the field that lead to keys of a case.
#include "reference/options/field_words.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

std::string message_of(const std::string& line) {
  return complaint<CaseError>([&] { parse_case(line); });
}

/// The tokens with what a case needs besides.
std::string completed(std::string_view tokens) {
  std::string line(tokens);
  if (line.find("seq=") == std::string::npos) line += " seq=8";
  if (line.find("dim=") == std::string::npos) line += " dim=4";
  return line;
}

TEST(FieldWords, WhatARowAdvisesIsACase) {
  for (const FieldWord& row : field_words()) {
    EXPECT_EQ(row.here.empty() ? "" : message_of(completed(row.here)), "") << row.here;
    EXPECT_FALSE(row.about.empty());
  }
}

TEST(FieldWords, EveryWordStandsOnceAndIsNoKey) {
  std::set<std::string> seen;
  for (const FieldWord& row : field_words()) {
    std::istringstream words{std::string(row.words)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(seen.insert(word).second) << word;
      EXPECT_EQ(find_option(word), nullptr) << word;
      EXPECT_EQ(find_field_word(word), &row) << word;
    }
  }
}

TEST(FieldWords, LeadToTheKeyOrSayThatThereIsNone) {
  for (const auto& [token, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"gqa", "heads=8/2"},           {"mla", "dim=576/512"},           {"mqa=1", "heads=8/1"},
           {"softmax_scale=2", "scale="},  {"sm_scale=2", "scale="},         {"seqlen=4", "seq="},
           {"seqlen_q=4", "seq="},         {"max_seqlen=4", "lengths="},     {"cu_seqlens=0,4", "layout=thd"},
           {"is_causal=True", "causal"},   {"attn_mask", "mask="},           {"dropout_p=0.1", "dropout="},
           {"num_heads=8", "heads="},      {"head-dim=64", "dim="},          {"WINDOW_SIZE=4", "window="},
           {"block_table=1", "paged="},    {"alibi_slopes=1", "alibi"},      {"logits_soft_cap=1", "softcap="},
           {"backward", "pass=backward"},  {"fp8", "k.dtype=e4m3"},          {"dtype=fp8", "k.dtype=e4m3"},
           {"dtype=float16", "dtype=f16"}, {"dtype=bfloat16", "dtype=bf16"}, {"layout=bshd", "layout=blhd"},
           {"nvfp4", "k.scale=block:16"},  {"int4", "k.dtype=i4"},           {"rotary_emb", "before"},
           {"threads=2", "--threads"}}) {
    const std::string message = message_of("seq=8 dim=4 " + std::string(token));
    EXPECT_NE(message.find(part), std::string::npos) << token << ": " << message;
  }
  EXPECT_NE(message_of("seq=8 dim=4 sofcap=2").find("nearest: softcap"), std::string::npos);
}

}  // namespace
}  // namespace attest
