#include "harness/report/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/report/run_header.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// As a run writes: of one backend and cause the first few.
constexpr int kMostMapsOfAFile = 8;

struct Part {
  CheckResults results;
  RunInfo info;
};

void require_same_selection(const Part& part, const Part& first) {
  const std::string& name = part.results.name;
  const CaseSelection &mine = part.info.selection, &others = first.info.selection;
  if (mine.fingerprint.empty()) {
    throw UserError(name + ": does not say which cases it is a part of; this attest's `check --json` does");
  }
  if (mine.fingerprint != others.fingerprint || mine.cases != others.cases) {
    throw UserError(
        fmt::format("{}: is of other cases, or another --filter, than {}; parts of one selection can be put together",
                    name, first.results.name));
  }
  for (const auto& [backend, count] : mine.verdicts) {
    const auto other = others.verdicts.find(backend);
    if (other != others.verdicts.end() && other->second != count) {
      throw UserError(fmt::format("{}: counts {} verdicts of {} where {} counts {}; one of the files was changed", name,
                                  count, backend, first.results.name, other->second));
    }
  }
  for (const Verdict& v : part.results.verdicts) {
    if (v.number < 1 || static_cast<std::size_t>(v.number) > mine.cases || !mine.verdicts.contains(v.backend)) {
      throw UserError(fmt::format("{}: holds a verdict that is none of its selection, on \"{}\" by {}", name,
                                  v.case_line, v.backend));
    }
  }
}

/// Values by what they are of, each with the files that say so.
using Said = std::map<std::string, std::vector<std::pair<std::string, std::vector<std::string>>>>;

void say(Said& said, const std::string& what, const std::string& value, const std::string& file) {
  auto& values = said[what];
  auto found = std::find_if(values.begin(), values.end(), [&](const auto& one) { return one.first == value; });
  if (found == values.end()) found = values.insert(values.end(), {value, {}});
  found->second.push_back(file);
}

/// The first few of them, with commas.
std::string listed(const std::vector<std::string>& texts) {
  constexpr std::size_t kNamed = 6;
  std::string list;
  for (std::size_t n = 0; n < std::min(texts.size(), kNamed); ++n) list += (n == 0 ? "" : ", ") + texts[n];
  return texts.size() <= kNamed ? list : fmt::format("{} and {} more", list, texts.size() - kNamed);
}

/// In what the parts' builds and machines differ.
std::vector<std::string> differences_of(const std::vector<Part>& parts) {
  Said said;
  std::set<std::string> conditions;
  for (const Part& part : parts) {
    for (const auto& [name, value] : part.info.conditions) conditions.insert(name);
  }
  for (const auto& [results, info] : parts) {
    const Origin& origin = info.origin;
    say(said, "commit", origin.commit, results.name);
    say(said, "build", origin.machine.build, results.name);
    say(said, "processor", origin.machine.cpu, results.name);
    say(said, "cores", std::to_string(origin.machine.cores), results.name);
    say(said, "system", origin.machine.system, results.name);
    for (const std::string& name : conditions) {
      const auto found = info.conditions.find(name);
      const bool of_some_runs = name.starts_with("backend.") || name == "drivers";
      if (name == "processor" || (of_some_runs && found == info.conditions.end())) continue;
      say(said, name, found == info.conditions.end() ? "" : found->second, results.name);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [what, values] : said) {
    if (values.size() < 2) continue;
    std::string sentence = "the parts differ in " + what + ":";
    for (const auto& [value, files] : values) {
      sentence += fmt::format("{} \"{}\" in {}", &value == &values.front().first ? "" : ";",
                              value.empty() ? "none" : value, listed(files));
    }
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

bool is_interchangeable(const std::vector<Part>& parts) {
  return std::none_of(parts.begin(), parts.end(), [&](const Part& part) {
    return part.info.conditions.empty() || difference(part.info.conditions, parts.front().info.conditions);
  });
}

/// What the parts say of themselves, together.
RunInfo common_info(const std::vector<Part>& parts) {
  RunInfo all = parts.front().info;
  all.selection.shard.clear();
  all.parts.clear();
  std::set<std::string> known;
  for (const Identity& backend : all.backends) known.insert(backend.name);
  for (const auto& [results, info] : parts) {
    for (const Identity& backend : info.backends) {
      if (known.insert(backend.name).second) all.backends.push_back(backend);
    }
    all.selection.verdicts.insert(info.selection.verdicts.begin(), info.selection.verdicts.end());
    all.conditions.insert(info.conditions.begin(), info.conditions.end());
    if (info.parts.empty()) {
      all.parts.push_back({results.name, info.selection.shard, info.origin, results.verdicts.size(), results.seconds});
    } else {
      all.parts.insert(all.parts.end(), info.parts.begin(), info.parts.end());
    }
  }
  all.unavailable.clear();
  std::set<std::string> missing;
  for (const auto& [results, info] : parts) {
    for (const Unavailable& one : info.unavailable) {
      if (!known.contains(one.name) && missing.insert(one.name).second) all.unavailable.push_back(one);
    }
  }
  if (!is_interchangeable(parts)) all.conditions.clear();
  all.cases = all.selection.cases;
  for (const auto& [backend, count] : all.selection.verdicts) all.verdicts += count;
  return all;
}

/// Case lines are numbers of one selection: the verdicts in its order, a file's own results first, then the backends.
void put_in_order(std::vector<Verdict>& verdicts, const std::vector<Identity>& backends) {
  std::map<std::string, std::size_t> rank;
  for (const Identity& backend : backends) rank.try_emplace(backend.name, rank.size() + 1);
  const auto place = [&](const Verdict& v) {
    const auto found = rank.find(v.backend);
    return std::pair(v.number, found == rank.end() ? 0 : found->second);
  };
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [&](const Verdict& a, const Verdict& b) { return place(a) < place(b); });
}

/// "i/n" of a file; nullopt for what is none.
std::optional<std::pair<std::size_t, std::size_t>> shard_of(const std::string& text) {
  std::pair<std::size_t, std::size_t> shard;
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, shard.first);
  if (error != std::errc() || slash == end || *slash != '/') return std::nullopt;
  if (std::from_chars(slash + 1, end, shard.second).ec != std::errc()) return std::nullopt;
  return shard;
}

/// Which shards no file is of; empty where the files are of different numbers of shards.
std::vector<std::string> absent_shards(const std::vector<RunPart>& parts) {
  constexpr std::size_t kMostShards = 100'000;
  std::set<std::size_t> there;
  std::optional<std::size_t> count;
  for (const RunPart& part : parts) {
    const auto shard = shard_of(part.shard);
    if (!shard || (count && *count != shard->second) || shard->second > kMostShards) return {};
    count = shard->second;
    there.insert(shard->first);
  }
  std::vector<std::string> absent;
  for (std::size_t n = 1; count && n <= *count; ++n) {
    if (!there.contains(n)) absent.push_back(fmt::format("{}/{}", n, *count));
  }
  return absent;
}

/// A sentence where verdicts are missing: how many, and what is known of why.
std::optional<std::string> incompleteness(const MergedRun& run, const std::vector<Part>& parts) {
  std::map<std::string, std::size_t> found;
  for (const Verdict& v : run.verdicts) ++found[v.backend];
  std::vector<std::string> missing;
  for (const auto& [backend, count] : run.info.selection.verdicts) {
    if (found[backend] < count)
      missing.push_back(fmt::format("{} of {} verdicts of {}", count - found[backend], count, backend));
  }
  if (missing.empty()) return std::nullopt;
  std::string sentence = fmt::format("incomplete: {} are missing", listed(missing));
  if (const std::vector<std::string> shards = absent_shards(run.info.parts); !shards.empty())
    sentence += fmt::format("; no file is of shard {}", listed(shards));
  for (const auto& [results, info] : parts) {
    if (results.interrupted) sentence += "; " + results.name + " was interrupted";
    for (const Unavailable& one : info.unavailable) {
      if (run.info.selection.verdicts.contains(one.name))
        sentence += fmt::format("; {} had no {}: {}", results.name, one.name, one.reason);
    }
  }
  return sentence;
}

/// The storage type is the case's; of a file's case it isn't known.
void find_dtype(Verdict& verdict) {
  try {
    if (verdict.content.empty()) verdict.dtype = parse_case(verdict.case_line).call.dtype;
  } catch (const std::exception&) {  // a line of another attest: only a column of a table depends on it
  }
}

/// Statements under which the failing cases of a backend are right in every part in which it fails.
std::vector<RightIfTold> common_statements(const std::vector<Part>& parts) {
  std::map<std::string, std::vector<const RightIfTold*>> told;  // by backend, a place for each part; null: it says none
  for (const auto& [results, info] : parts) {
    std::set<std::string> failing;
    for (const Verdict& v : results.verdicts) {
      if (is_failure(v)) failing.insert(v.backend);
    }
    for (const std::string& backend : failing) {
      const auto found = std::find_if(results.right_if.begin(), results.right_if.end(),
                                      [&](const RightIfTold& one) { return one.backend == backend; });
      told[backend].push_back(found == results.right_if.end() ? nullptr : &*found);
    }
  }
  std::vector<RightIfTold> common;
  for (const auto& [backend, list] : told) {
    const bool same = std::all_of(list.begin(), list.end(), [&, first = list.front()](const RightIfTold* one) {
      return one && one->statement == first->statement;
    });
    if (same) common.push_back(*list.front());
  }
  return common;
}

}  // namespace

MergedRun merge_runs(std::vector<CheckResults> files) {
  std::vector<Part> parts;
  for (CheckResults& file : files) {
    RunInfo info = run_header_from_json(file.header);
    parts.push_back({std::move(file), std::move(info)});
    require_same_selection(parts.back(), parts.front());
  }
  MergedRun run;
  run.info = common_info(parts);
  run.differences = differences_of(parts);
  std::map<std::pair<std::int64_t, std::string>, std::pair<std::size_t, const Part*>> first;
  std::set<std::string> complaints;
  for (Part& part : parts) {
    for (Verdict& verdict : part.results.verdicts) {
      const auto [place, fresh] = first.try_emplace({verdict.number, verdict.backend}, run.verdicts.size(), &part);
      if (fresh) {
        find_dtype(verdict);
        run.verdicts.push_back(verdict);
        continue;
      }
      auto& [index, other] = place->second;
      Verdict& before = run.verdicts[index];
      std::string sentence = fmt::format("{} on \"{}\" is in {} and in {}", verdict.backend, verdict.case_line,
                                         other->results.name, part.results.name);
      if (before.status != verdict.status)
        sentence += fmt::format(", {} and {}", name_of(before.status), name_of(verdict.status));
      run.doubles.push_back(std::move(sentence));
      if (!is_failure(before) && is_failure(verdict)) {
        find_dtype(verdict);
        before = verdict;
      }
    }
    run.shrunk.insert(run.shrunk.end(), part.results.shrunk.begin(), part.results.shrunk.end());
    run.seconds += part.results.seconds;
    for (const std::string& problem : part.results.problems) {
      if (complaints.insert(problem).second) run.problems.push_back(problem);
    }
  }
  run.right_if = common_statements(parts);
  put_in_order(run.verdicts, run.info.backends);
  std::map<std::string, int> maps;
  for (Verdict& v : run.verdicts) {
    if (v.error_map && ++maps[v.backend + ": " + v.cause.text()] > kMostMapsOfAFile) v.error_map.reset();
  }
  if (auto missing = incompleteness(run, parts)) run.problems.push_back(std::move(*missing));
  return run;
}

std::vector<std::string> tell(const MergedRun& run, const std::vector<std::unique_ptr<Report>>& reports) {
  Counts counts;
  std::map<std::pair<std::string, std::string>, const Verdict*> failures;
  for (const Verdict& verdict : run.verdicts) {
    counts.add(verdict);
    if (is_failure(verdict)) failures.try_emplace({verdict.backend, verdict.case_line}, &verdict);
  }
  std::vector<std::string> unwritten;
  for (const auto& report : reports) {
    report->begin(run.info);
    for (const Verdict& verdict : run.verdicts) report->verdict(verdict);
    for (const ShrunkFailure& one : run.shrunk) {
      const auto failure = failures.find({one.backend, one.case_line});
      if (failure == failures.end()) continue;
      Verdict small;
      small.case_line = one.smallest;
      small.backend = one.backend;
      small.reason = one.reason;
      small.repro = one.repro;
      small.cause = cause_from_text(one.cause);
      report->shrunk(*failure->second, small);
    }
    for (const RightIfTold& told : run.right_if) report->right_if(told);
    try {
      Ending ending;
      ending.verdicts_wanted = run.info.verdicts;
      report->ending(ending);
      report->end(counts, run.seconds, run.problems);
    } catch (const OutputError& error) {
      unwritten.emplace_back(error.what());
    }
  }
  return unwritten;
}

}  // namespace attest
