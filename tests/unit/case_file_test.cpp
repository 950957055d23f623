// Cases from files with packed sequences, pages and states: the same answers as the lines that describe them, and one
// sentence for each way in which their index tensors can be wrong.
#include "harness/cases/case_file.h"

#include "reference/softmax/attention.h"
#include "tests/unit/complaint.h"
#include "tests/unit/file_writer.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// 0, 1/8, 2/8, ... with a sign now and then.
std::vector<float> numbers(std::int64_t count, int salt) {
  std::vector<float> list;
  for (std::int64_t n = 0; n < count; ++n) list.push_back(static_cast<float>((n * 37 + salt) % 23 - 11) / 8.0f);
  return list;
}

std::string complaint_about(const FileWriter& file) {
  return complaint([&] { case_from_file(file.write()); });
}

void every_backend_passes(const Case& source) {
  const BackendSet backends(registered_backends(), {}, {1, ""});
  const PreparedCase prepared(source, backends.all(), 1);
  for (Backend* backend : backends.all()) EXPECT_EQ(prepared.check(*backend).status, Status::pass);
}

void example_passes(const Case& source) {
  const BackendSet backends(registered_backends(), {"example"}, {1, ""});
  const Verdict verdict = PreparedCase(source, backends.all(), 1).check(*backends.all().front());
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
}

Status check_gradients_of_example(const Case& source) {
  const BackendSet backends(registered_backends(), {"example"}, {1, ""});
  return PreparedCase(source, backends.all(), 1).check(*backends.all().front()).status;
}

/// Two sequences of 2 and 3 queries, 4 and 1 keys; 2 heads over 1, dim 2.
FileWriter packed(const std::vector<std::int32_t>& q, const std::vector<std::int32_t>& k) {
  FileWriter file;
  file.add("q", {5, 2, 2}, numbers(20, 1));
  file.add("k", {5, 1, 2}, numbers(10, 2));
  file.add("v", {5, 1, 2}, numbers(10, 3));
  file.add("cu_seqlens_q", {static_cast<std::int64_t>(q.size())}, q);
  file.add("cu_seqlens_k", {static_cast<std::int64_t>(k.size())}, k);
  file.metadata("layout", "thd");
  file.metadata("options", "causal align=bottom-right");
  return file;
}

TEST(FileCases, PackedSequencesAreTheirParts) {
  const Case whole = case_from_file(packed({0, 2, 5}, {0, 4, 5}).write());
  EXPECT_EQ(whole.problem.call.batch, 2);
  EXPECT_EQ(print_case(whole.problem),
            "batch=2 heads=2/1 seq=3x4 dim=2 causal align=bottom-right lengths=q:2,3/k:4,1 layout=thd");
  const std::vector<Row> rows = attention(whole.problem, whole.inputs->views()).rows;
  ASSERT_EQ(rows.size(), 10u);
  // The second sequence alone, heads side by side as in the file.
  FileWriter second;
  const auto q = numbers(20, 1), k = numbers(10, 2), v = numbers(10, 3);
  second.add("q", {1, 3, 4}, std::vector<float>(q.begin() + 8, q.end()));
  second.add("k", {1, 1, 2}, std::vector<float>(k.begin() + 8, k.end()));
  second.add("v", {1, 1, 2}, std::vector<float>(v.begin() + 8, v.end()));
  second.metadata("layout", "bld");
  second.metadata("heads", "2");
  second.metadata("kv_heads", "1");
  second.metadata("options", "causal align=bottom-right");
  const Case part = case_from_file(second.write());
  const std::vector<Row> alone = attention(part.problem, part.inputs->views()).rows;
  ASSERT_EQ(alone.size(), 6u);
  for (std::size_t r = 0; r < 6; ++r) EXPECT_EQ(rows[4 + r].output, alone[r].output);
  every_backend_passes(whole);
}

TEST(FileCases, CumulativeLengthsAreChecked) {
  EXPECT_NE(complaint_about(packed({0, 3, 2, 5}, {0, 4, 5, 5})).find("cu_seqlens_q"), std::string::npos);
  EXPECT_NE(complaint_about(packed({0, 2, 5}, {0, 4, 6})).find("cu_seqlens_k"), std::string::npos);
  EXPECT_NE(complaint_about(packed({0, 2, 4}, {0, 4, 5})), "");
  EXPECT_NE(complaint_about(packed({1, 2, 5}, {0, 4, 5})), "");
  EXPECT_NE(complaint_about(packed({0, 5}, {0, 4, 5})).find("cu_seqlens_q [2]"), std::string::npos);
  FileWriter without = packed({0, 2, 5}, {0, 4, 5});
  without.metadata("options", "lengths=1,1");
  EXPECT_NE(complaint_about(without), "");
}

/// Three pages of 2 rows; sequence 0 has 3 keys in pages 2 and 0, sequence 1 has 2 keys in page 2.
FileWriter paged(const std::vector<std::int32_t>& table, const std::string& options) {
  FileWriter file;
  file.add("q", {2, 1, 1, 2}, numbers(4, 5));
  file.add("k", {3, 1, 2, 2}, numbers(12, 6));
  file.add("v", {3, 1, 2, 2}, numbers(12, 7));
  file.add("page_table", {2, 2}, table);
  file.metadata("options", options);
  return file;
}

TEST(FileCases, PagesAreReadThroughTheTable) {
  const Case source = case_from_file(paged({2, 0, 2, -1}, "lengths=3,2").write());
  const std::vector<Row> rows = attention(source.problem, source.inputs->views()).rows;
  const std::vector<float> k = numbers(12, 6), q = numbers(4, 5);
  const auto score = [&](std::size_t row, std::size_t key) {
    return (static_cast<double>(q[2 * row]) * static_cast<double>(k[2 * key]) +
            static_cast<double>(q[2 * row + 1]) * static_cast<double>(k[2 * key + 1])) /
           std::sqrt(2.0);
  };
  const std::vector<std::vector<std::size_t>> keys = {{4, 5, 0}, {4, 5}};
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = 0; j < keys[b].size(); ++j) EXPECT_NEAR(rows[b].raw[j], score(b, keys[b][j]), 1e-12);
    EXPECT_EQ(rows[b].visible_count, static_cast<std::int64_t>(keys[b].size()));
  }
  every_backend_passes(source);
}

TEST(FileCases, PageTablesAreChecked) {
  EXPECT_NE(complaint_about(paged({2, 3, 2, 0}, "")).find("page_table[0,1] = 3"), std::string::npos);
  EXPECT_NE(complaint_about(paged({2, 0, -1, 0}, "lengths=3,2")).find("page_table[1,0] = -1"), std::string::npos);
  EXPECT_NE(complaint_about(paged({2, 0, 2, 0}, "paged=1")), "");
  FileWriter file = paged({2, 0, 2, 0}, "");
  file.add("page_table", {1, 4}, std::vector<std::int32_t>{0, 1, 2, 0});
  EXPECT_NE(complaint_about(file), "");
}

/// Sequences of 2, 0 and 1 packed queries and `used` keys, each in pages of two rows.
FileWriter packed_pages(const std::vector<std::int32_t>& used) {
  FileWriter file;
  file.add("q", {3, 1, 2}, numbers(6, 5));
  file.add("k", {3, 2, 1, 2}, numbers(12, 6));
  file.add("v", {3, 2, 1, 2}, numbers(12, 7));
  file.add("cu_seqlens_q", {4}, std::vector<std::int32_t>{0, 2, 2, 3});
  file.add("seqused_k", {static_cast<std::int64_t>(used.size())}, used);
  file.add("page_table", {3, 2}, std::vector<std::int32_t>{2, 0, -1, 7, 1, -1});
  file.metadata("layout", "thd");
  file.metadata("options", "causal align=bottom-right");
  return file;
}

TEST(FileCases, PackedQueriesHavePagedKeys) {
  const Case source = case_from_file(packed_pages({3, 0, 2}).write());
  const Call& call = source.problem.call;
  EXPECT_EQ(call.lengths->query, (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(call.lengths->key, (std::vector<std::int64_t>{3, 0, 2}));
  const std::vector<Row> rows = attention(source.problem, source.inputs->views()).rows;
  const std::vector<float> k = numbers(12, 6), q = numbers(6, 5);
  const auto score = [&](std::size_t token, std::size_t key) {
    return (static_cast<double>(q[2 * token]) * static_cast<double>(k[2 * key]) +
            static_cast<double>(q[2 * token + 1]) * static_cast<double>(k[2 * key + 1])) /
           std::sqrt(2.0);
  };
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].visible_count, 2);
  EXPECT_NEAR(rows[0].raw[1], score(0, 5), 1e-12);
  EXPECT_NEAR(rows[1].raw[2], score(1, 0), 1e-12) << "the third key lies in the second page";
  EXPECT_NEAR(rows[2].raw[0], score(2, 2), 1e-12);
  EXPECT_EQ(rows[2].visible_count, 2);
  every_backend_passes(source);
}

TEST(FileCases, PackedQueriesOverPagesAreChecked) {
  EXPECT_NE(complaint_about(packed_pages({3, 0, 5})).find("seqused_k[2] = 5 is out of range: 0 to 4"),
            std::string::npos);
  EXPECT_NE(complaint_about(packed_pages({3, 1, 2})).find("page_table[1,0] = -1"), std::string::npos);
  EXPECT_NE(complaint_about(packed_pages({3, 0})), "");
  FileWriter file = packed_pages({3, 0, 2});
  file.add("page_table", {2, 2}, std::vector<std::int32_t>{2, 0, 1, 0});
  EXPECT_NE(complaint_about(file).find("for each of 3 sequences"), std::string::npos);
}

/// Two sequences of 2 and 1 queries and `keys`, with a cache of four rows each.
FileWriter launch(const std::vector<std::int32_t>& keys, const std::string& options) {
  FileWriter file;
  file.add("q", {2, 1, 2, 2}, numbers(8, 5));
  file.add("k", {2, 1, 4, 2}, numbers(16, 6));
  file.add("v", {2, 1, 4, 2}, numbers(16, 7));
  file.add("query_lengths", {2}, std::vector<std::int32_t>{2, 1});
  file.add("key_lengths", {static_cast<std::int64_t>(keys.size())}, keys);
  file.metadata("options", options);
  return file;
}

TEST(FileCases, LengthsAreData) {
  const Case source = case_from_file(launch({4, 2}, "dynamic causal align=bottom-right").write());
  EXPECT_EQ(source.problem.call.lengths, (LengthSpec{{2, 1}, {4, 2}}));
  EXPECT_EQ(attention(source.problem, source.inputs->views()).rows[2].visible_count, 2);
  example_passes(source);
  EXPECT_NE(complaint_about(launch({4, 5}, "dynamic")).find("key_lengths[1] = 5 is out of range: 0 to 4"),
            std::string::npos);
  EXPECT_NE(complaint_about(launch({4, -1}, "dynamic")).find("key_lengths[1] = -1"), std::string::npos);
  EXPECT_NE(complaint_about(launch({4}, "dynamic")).find("for each of 2 batches"), std::string::npos);
  EXPECT_NE(complaint_about(launch({4, 2}, "")).find("say dynamic"), std::string::npos);
}

TEST(FileCases, NewKeysAreAppended) {
  FileWriter file = launch({4, 2}, "dynamic append causal align=bottom-right");
  EXPECT_NE(complaint_about(file).find("\"new_k\" is missing"), std::string::npos);
  file.add("new_k", {2, 1, 2, 2}, numbers(8, 1));
  file.add("new_v", {2, 1, 2, 2}, numbers(8, 2));
  const Case source = case_from_file(file.write());
  const std::vector<Row> rows = attention(source.problem, source.inputs->views()).rows;
  const std::vector<float> k = numbers(8, 1), q = numbers(8, 5);
  const double expected =
      (static_cast<double>(q[4]) * static_cast<double>(k[4]) + static_cast<double>(q[5]) * static_cast<double>(k[5])) /
      std::sqrt(2.0);
  EXPECT_NEAR(rows[2].raw[1], expected, 1e-12) << "the second key of sequence 1 is its first new one";
  example_passes(source);
  file.add("new_v", {2, 1, 3, 2}, numbers(12, 2));
  EXPECT_NE(complaint_about(file).find("new_v [2,1,3,2]: a row for each of q"), std::string::npos);
  file.metadata("options", "dynamic");
  EXPECT_NE(complaint_about(file).find("new_k belongs to append"), std::string::npos);
}

/// Two sequences with 2 and 1 cached keys and a new one each.
FileWriter cached(const std::vector<std::int32_t>& counts) {
  FileWriter file;
  file.add("q", {2, 1, 1, 2}, numbers(4, 5));
  file.add("k", {2, 1, 1, 2}, numbers(4, 6));
  file.add("v", {2, 1, 1, 2}, numbers(4, 7));
  file.add("past_k", {2, 1, 2, 2}, numbers(8, 8));
  file.add("past_v", {2, 1, 2, 2}, numbers(8, 9));
  file.add("past_lengths", {static_cast<std::int64_t>(counts.size())}, counts);
  return file;
}

TEST(FileCases, EachSequenceHasItsOwnCachedKeys) {
  const Case source = case_from_file(cached({2, 1}).write());
  EXPECT_EQ(source.problem.call.past_lengths, (std::vector<std::int64_t>{2, 1}));
  const std::vector<Row> rows = attention(source.problem, source.inputs->views()).rows;
  const std::vector<float> q = numbers(4, 5), k = numbers(4, 6), past = numbers(8, 8);
  const auto score = [&](std::size_t b, const std::vector<float>& keys, std::size_t row) {
    return (static_cast<double>(q[2 * b]) * static_cast<double>(keys[2 * row]) +
            static_cast<double>(q[2 * b + 1]) * static_cast<double>(keys[2 * row + 1])) /
           std::sqrt(2.0);
  };
  EXPECT_NEAR(rows[0].raw[1], score(0, past, 1), 1e-12);
  EXPECT_NEAR(rows[0].raw[2], score(0, k, 0), 1e-12);
  EXPECT_NEAR(rows[1].raw[0], score(1, past, 2), 1e-12);
  EXPECT_NEAR(rows[1].raw[1], score(1, k, 1), 1e-12) << "the new key follows the one that is cached";
  EXPECT_EQ(rows[1].visible_count, 2);
  every_backend_passes(source);
}

TEST(FileCases, CachedLengthsAreChecked) {
  EXPECT_NE(complaint_about(cached({2, 3})).find("past_lengths[1] = 3"), std::string::npos)
      << complaint_about(cached({2, 3}));
  EXPECT_NE(complaint_about(cached({2, -1})).find("past_lengths[1] = -1"), std::string::npos);
  EXPECT_NE(complaint_about(cached({1, 1})).find("cut past_k"), std::string::npos);
  EXPECT_NE(complaint_about(cached({2, 1, 0})).find("past_lengths [3]"), std::string::npos);
  EXPECT_EQ(complaint_about(cached({2, 2})), "");
}

TEST(FileCases, TensorsKeepTheTypesThatTheyHave) {
  FileWriter file;
  file.add("q", {1, 1, 2, 2}, numbers(4, 1));
  file.add_halves("k", {1, 1, 3, 2}, {1, 0.5, -2, 0.25, 3, -1});
  file.add("v", {1, 1, 3, 2}, numbers(6, 3));
  file.metadata("options", "out.dtype=f16");
  const Case source = case_from_file(file.write());
  EXPECT_EQ(type_of(source.problem, TensorId::q), DType::f32);
  EXPECT_EQ(type_of(source.problem, TensorId::k), DType::f16);
  EXPECT_EQ(type_of(source.problem, TensorId::out), DType::f16);
  const Inputs inputs = source.inputs->views();
  EXPECT_EQ(inputs.k().dtype, DType::f16);
  EXPECT_EQ(load(inputs.k().data, DType::f16, inputs.k().offset(0, 0, 1, 0)), -2);
  file.metadata("options", "k.dtype=f32");
  EXPECT_NE(complaint_about(file).find("k.dtype comes from the tensors"), std::string::npos) << complaint_about(file);
}

TEST(FileCases, StatesAndDecaysMustFit) {
  FileWriter file;
  file.add("q", {1, 1, 2, 2}, numbers(4, 1));
  file.add("k", {1, 1, 2, 2}, numbers(4, 2));
  file.add("v", {1, 1, 2, 3}, numbers(6, 3));
  file.metadata("options", "op=gated state");
  EXPECT_NE(complaint_about(file).find("decay"), std::string::npos) << complaint_about(file);
  file.add("decay", {1, 1, 2, 2}, numbers(4, 4));
  file.add("past_state", {1, 1, 3, 2}, numbers(6, 5));
  EXPECT_NE(complaint_about(file).find("past_state [1,1,3,2]"), std::string::npos) << complaint_about(file);
  file.add("past_state", {1, 1, 2, 3}, numbers(6, 5));
  EXPECT_EQ(complaint_about(file), "");
}

double element(const Case& source, TensorId id, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  const Inputs inputs = source.inputs->views();
  const ConstTensor& view = inputs.at(id);
  return load(view.data, view.dtype, view.offset(b, h, l, d));
}

/// Tokens 0 and 1 of one sequence and 2 of another; two states share one head of q and k.
FileWriter packed_states() {
  FileWriter file;
  file.add("q", {3, 1, 2}, numbers(6, 5));
  file.add("k", {3, 1, 2}, numbers(6, 6));
  file.add("v", {3, 2, 3}, numbers(18, 7));
  file.add("decay", {3, 2, 2}, numbers(12, 8));
  file.add("cu_seqlens_q", {3}, std::vector<std::int32_t>{0, 2, 3});
  file.add("cu_seqlens_k", {3}, std::vector<std::int32_t>{0, 2, 3});
  file.metadata("layout", "thd");
  file.metadata("options", "op=gated");
  return file;
}

TEST(FileCases, PackedLinearAttentionMayShareHeads) {
  const Case source = case_from_file(packed_states().write());
  const Call& call = source.problem.call;
  EXPECT_EQ(call.qk_heads, 1);
  EXPECT_EQ(call.key_heads, 2);
  EXPECT_EQ(call.lengths->key, (std::vector<std::int64_t>{2, 1}));
  EXPECT_TRUE(call.lengths->query.empty());
  const std::vector<float> decay = numbers(12, 8), v = numbers(18, 7);
  EXPECT_EQ(element(source, TensorId::decay, 1, 1, 0, 0), static_cast<double>(decay[10])) << "token 2, head 1";
  EXPECT_EQ(element(source, TensorId::decay, 0, 0, 1, 1), static_cast<double>(decay[5])) << "token 1, head 0";
  EXPECT_EQ(element(source, TensorId::v, 1, 1, 0, 2), static_cast<double>(v[17]));
  example_passes(source);
}

TEST(FileCases, PackedLinearAttentionIsChecked) {
  FileWriter file = packed_states();
  file.add("decay", {2, 2, 2}, numbers(8, 8));
  EXPECT_NE(complaint_about(file).find("decay [2,2,2]"), std::string::npos) << complaint_about(file);
  file = packed_states();
  file.add("cu_seqlens_k", {3}, std::vector<std::int32_t>{0, 1, 3});
  EXPECT_NE(complaint_about(file).find("a token is query and key at once"), std::string::npos) << complaint_about(file);
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// n,B,H,L,D and n,B,H,L: part x of batch b is number x * B + b.
TEST(FileCases, PartsOfAMergeAreReadOneAfterTheOther) {
  FileWriter file;
  file.add("part_o", {3, 2, 1, 2, 2}, numbers(24, 1));
  file.add_halves("part_lse", {3, 2, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  file.metadata("options", "base=2 out=o,lse");
  const Case source = case_from_file(file.write());
  const Call& p = source.problem;
  EXPECT_EQ(print_call(p), "op=merge batch=2 seq=2 dim=2 parts=3 base=2 out=o,lse part_lse.dtype=f16");
  EXPECT_EQ(element(source, TensorId::part_lse, 2 * 2 + 1, 0, 1, 0), 11);
  EXPECT_EQ(element(source, TensorId::part_o, 1 * 2 + 0, 0, 1, 1), static_cast<double>(numbers(24, 1)[11]));
  file.add("part_lse", {3, 2, 1, 2, 1}, numbers(12, 2));
  EXPECT_EQ(complaint_about(file), "");
  file.add("part_lse", {2, 3, 1, 2}, numbers(12, 2));
  expect_part(complaint_about(file), "[n,B,H,L] is wanted");
  file.add("part_lse", {3, 2, 1, 2}, numbers(12, 2));
  file.metadata("options", "parts=2");
  expect_part(complaint_about(file), "parts comes from the tensors");
  file.metadata("options", "causal");
  expect_part(complaint_about(file), "causal");
  file.metadata("options", "");
  file.add("part_o", {6, 1, 2, 2}, numbers(24, 1));
  expect_part(complaint_about(file), "[n,B,H,L,D] is wanted");
}

/// 2 heads of 3 queries and 3 keys, 2 features and 1 of v, with gradients.
FileWriter with_gradients(const std::string& options) {
  FileWriter file;
  file.add("q", {1, 2, 3, 2}, numbers(12, 1));
  file.add("k", {1, 2, 3, 2}, numbers(12, 2));
  file.add("v", {1, 2, 3, 1}, numbers(6, 3));
  file.add("do", {1, 2, 3, 1}, numbers(6, 4));
  file.metadata("options", options);
  return file;
}

TEST(FileCases, GradientsComeFromTheFilesDerivatives) {
  FileWriter file = with_gradients("pass=backward dlse out=dq,dk,dv");
  file.add("dlse", {1, 2, 3}, numbers(6, 5));
  const Case source = case_from_file(file.write());
  EXPECT_EQ(print_case(source.problem), "pass=backward heads=2 seq=3 dim=2/1 dlse");
  const Inputs inputs = source.inputs->views();
  EXPECT_EQ(inputs.at(TensorId::dout).dtype, DType::f32);
  EXPECT_EQ(element(source, TensorId::dout, 0, 1, 2, 0), numbers(6, 4)[5]);
  EXPECT_EQ(element(source, TensorId::dlse, 0, 1, 0, 0), numbers(6, 5)[3]);
  // What was saved is the reference's.
  const std::vector<Row> rows = attention(source.problem, inputs).rows;
  EXPECT_EQ(element(source, TensorId::saved_o, 0, 1, 2, 0), static_cast<float>(rows[5].output[0]));
  EXPECT_EQ(element(source, TensorId::saved_lse, 0, 1, 2, 0), static_cast<float>(rows[5].lse));
  EXPECT_EQ(check_gradients_of_example(source), Status::pass);
  // Or the file's.
  file.add("saved_lse", {2, 3}, std::vector<float>(6, 0.5F));
  file.add_halves("do", {1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Case saved = case_from_file(file.write());
  EXPECT_EQ(element(saved, TensorId::saved_lse, 0, 1, 2, 0), 0.5);
  EXPECT_EQ(element(saved, TensorId::saved_o, 0, 1, 2, 0), static_cast<float>(rows[5].output[0]));
  EXPECT_EQ(print_case(saved.problem), "pass=backward heads=2 seq=3 dim=2/1 dlse do.dtype=f16");
}

TEST(FileCases, GradientsOfPackedSequencesArePacked) {
  FileWriter file = packed({0, 2, 5}, {0, 4, 5});
  file.metadata("options", "pass=both causal align=bottom-right dlse out=o,dq,dk,dv");
  file.add("do", {5, 2, 2}, numbers(20, 4));
  file.add("dlse", {5, 2}, numbers(10, 5));
  const Case source = case_from_file(file.write());
  EXPECT_EQ(element(source, TensorId::dout, 1, 1, 2, 0), numbers(20, 4)[18]);
  EXPECT_EQ(element(source, TensorId::dlse, 1, 1, 2, 0), numbers(10, 5)[9]);
  EXPECT_EQ(check_gradients_of_example(source), Status::pass);
}

TEST(FileCases, WhatAFileSaysOfGradientsIsChecked) {
  const auto with = [](const std::string& options, const auto& change) {
    FileWriter file = with_gradients(options);
    change(file);
    return complaint_about(file);
  };
  const auto nothing = [](FileWriter&) {};
  EXPECT_EQ(with("pass=backward", nothing), "");
  expect_part(with("pass=backward",
                   [](FileWriter& f) {
                     f.add("do", {1, 2, 3, 2}, numbers(12, 1));
                   }),
              "do [1,2,3,2]: [1,2,3,1] is wanted");
  expect_part(with("pass=backward",
                   [](FileWriter& f) {
                     f.add("do", {1, 2, 3, 1}, std::vector<std::int32_t>(6));
                   }),
              "tensor \"do\" has type I32");
  expect_part(with("pass=backward dlse", nothing), "tensor \"dlse\" is missing");
  expect_part(with("pass=backward dlse",
                   [](FileWriter& f) {
                     f.add("dlse", {1, 3, 2}, numbers(6, 1));
                   }),
              "dlse [1,3,2]: [1,2,3] is wanted");
  expect_part(with("pass=backward",
                   [](FileWriter& f) {
                     f.add("saved_o", {1, 2, 2, 1}, numbers(4, 1));
                   }),
              "saved_o [1,2,2,1]");
  const auto with_result = [&](const std::string& options, const std::string& name) {
    return with(options, [&](FileWriter& f) {
      f.add("mask", {3, 3}, numbers(9, 1));
      f.add(name, {1, 1, 3, 3}, numbers(9, 1));
      f.metadata("tolerance", "1");
    });
  };
  EXPECT_EQ(with_result("pass=backward", "dmask"), "");
  expect_part(with_result("pass=backward", "dsinks"), "tensor \"dsinks\"");
  FileWriter forward = with_gradients("causal");
  forward.metadata("tolerance", "1");
  EXPECT_EQ(complaint_about(forward), "");
  forward.add("dq", {1, 2, 3, 2}, numbers(12, 1));
  expect_part(complaint_about(forward), "tensor \"dq\"");
}

TEST(FileCases, WhatAFileSaysOfItselfHoldsNoControlCharacters) {
  FileWriter file;
  for (const char* name : {"q", "k", "v"}) file.add(name, {1, 2}, std::vector<float>{1, 2});
  file.add("output", {1, 2}, std::vector<float>{1, 2});
  file.metadata("tolerance", "1e-6");
  file.metadata("tokens", "a\x1b[2Jb \xc2\x9b");
  file.metadata("about", "two\nlines\x1b]0;title\x07");
  const Case source = case_from_file(file.write());
  ASSERT_TRUE(source.golden);
  EXPECT_EQ(source.golden->tokens, (std::vector<std::string>{"a\\x1b[2Jb", "\\xc2\\x9b"}));
  EXPECT_EQ(source.golden->about, "two\nlines\\x1b]0;title\\x07");
  EXPECT_EQ(source.content.size(), 32u);
}

}  // namespace
}  // namespace attest
