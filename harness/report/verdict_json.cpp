#include "harness/report/verdict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/base/schema.h"

namespace attest {
namespace {

/// How a field says that it has no value: it always has one, it is null, or it isn't there.
enum class Absent { never, null, left_out };

template <class T, class Struct>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Struct>;

// The fields in the order of the file. A visitor takes each with its name: a writer from a constant struct, a reader
// into one that is not.

void each_field(MaybeConst<WorstElement> auto& worst, auto& field) {
  field("output", worst.output);
  field("index", worst.index);
  field("got", worst.got);
  field("expected", worst.expected);
  field("bound", worst.bound);
}

void each_field(MaybeConst<SignedBias> auto& bias, auto& field) {
  field("output", bias.output);
  field("elements", bias.elements);
  field("up", bias.up);
  field("outward", bias.outward);
}

void each_field(MaybeConst<Repeats> auto& repeats, auto& field) {
  field("wrong", repeats.wrong);
  field("runs", repeats.runs);
}

void each_field(MaybeConst<StepSeconds> auto& seconds, auto& field) {
  field("prepare", seconds.prepare);
  field("upload", seconds.upload);
  field("run", seconds.run);
  field("download", seconds.download);
}

void each_field(MaybeConst<BitwiseFacts> auto& facts, auto& field) {
  field("runs", facts.runs, Absent::null);
  field("threads", facts.threads, Absent::null);
  field("batch", facts.batch, Absent::null);
}

void each_field(MaybeConst<ErrorGrid> auto& grid, auto& field) {
  field("height", grid.height);
  field("width", grid.width);
  field("cells", grid.cells);
}

void each_field(MaybeConst<ErrorMap> auto& map, auto& field) {
  field("output", map.output);
  field("rows", map.rows);
  field("batch", map.batch);
  field("head", map.head);
  field("elements", map.elements);
}

void each_field(MaybeConst<Spread> auto& spread, auto& field) {
  field("median", spread.median);
  field("p99", spread.p99);
  field("largest", spread.largest);
}

void each_field(MaybeConst<Accuracy> auto& accuracy, auto& field) {
  field("output", accuracy.output);
  field("compared", accuracy.compared);
  field("unproven", accuracy.unproven);
  field("elements", accuracy.elements);
  field("ulps", accuracy.ulps);
  field("relative", accuracy.relative);
  field("normwise", accuracy.normwise);
}

void each_field(MaybeConst<Verdict> auto& verdict, auto& field) {
  field("suite", verdict.suite);
  field("case", verdict.case_line);
  field("content", verdict.content, Absent::left_out);
  field("backend", verdict.backend);
  field("number", verdict.number, Absent::left_out);
  field("status", verdict.status);
  field("reason", verdict.reason, Absent::null);
  field("cause", verdict.cause, Absent::left_out);
  field("mistakes", verdict.mistakes, Absent::left_out);
  field("after", verdict.after, Absent::left_out);
  field("steps", verdict.steps, Absent::left_out);
  field("repeats", verdict.repeats, Absent::left_out);
  field("error_over_bound", verdict.error_over_bound, Absent::null);
  field("worst", verdict.worst, Absent::null);
  field("error_map", verdict.error_map, Absent::left_out);
  field("error_over_sigma", verdict.error_over_sigma, Absent::left_out);
  field("bias", verdict.bias, Absent::left_out);
  field("accuracy", verdict.accuracy, Absent::left_out);
  field("waiver", verdict.waiver, Absent::left_out);
  field("rows_checked", verdict.rows_checked);
  field("rows", verdict.rows);
  field("seconds", verdict.seconds);
  field("bitwise", verdict.bitwise, Absent::left_out);
  field("repro", verdict.repro);
}

/// Writes the fields of a struct into an object.
class Writer {
 public:
  explicit Writer(OrderedJson& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value, Absent absent = Absent::never) {
    if (absent == Absent::never || !is_empty(value)) {
      write(object_[name], value);
    } else if (absent == Absent::null) {
      object_[name] = nullptr;
    }
  }

 private:
  static bool is_empty(const std::string& text) { return text.empty(); }
  static bool is_empty(const FailureCause& cause) { return cause.empty(); }
  static bool is_empty(std::int64_t number) { return number == 0; }
  template <class T>
  static bool is_empty(const std::vector<T>& list) {
    return list.empty();
  }
  template <class T>
  static bool is_empty(const std::optional<T>& value) {
    return !value;
  }
  template <class T>
  static bool is_empty(const T&) {
    return false;
  }

  static void write(OrderedJson& json, const std::string& text) { json = text; }
  static void write(OrderedJson& json, bool value) { json = value; }
  static void write(OrderedJson& json, std::int64_t number) { json = number; }
  static void write(OrderedJson& json, const Index4& index) { json = index; }
  static void write(OrderedJson& json, const std::vector<std::string>& texts) { json = texts; }
  static void write(OrderedJson& json, Status status) { json = name_of(status); }
  static void write(OrderedJson& json, const FailureCause& cause) { json = cause.text(); }
  static void write(OrderedJson& json, const std::vector<SignedBias>& list) {
    for (const SignedBias& one : list)
      write(json.emplace_back(), SignedBias{one.output, one.elements, rounded(one.up), rounded(one.outward)});
  }
  static void write(OrderedJson& json, const std::vector<Accuracy>& list) {
    for (Accuracy one : list) {
      for (Spread* spread : {&one.ulps, &one.relative})
        *spread = {rounded(spread->median), rounded(spread->p99), rounded(spread->largest)};
      one.normwise = rounded(one.normwise);
      write(json.emplace_back(), one);
    }
  }
  /// Three digits are enough for a picture; null where nothing was compared.
  static void write(OrderedJson& json, const std::vector<std::vector<double>>& cells) {
    json = OrderedJson::array();
    for (const std::vector<double>& row : cells) {
      OrderedJson& line = json.emplace_back(OrderedJson::array());
      for (double cell : row) {
        OrderedJson& place = line.emplace_back();
        if (!std::isnan(cell)) write(place, std::isinf(cell) ? cell : rounded(cell));
      }
    }
  }
  /// JSON has no NaN or infinity; they are written as strings.
  static void write(OrderedJson& json, double number) {
    if (std::isfinite(number))
      json = number;
    else
      json = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  static double rounded(double number) { return std::strtod(fmt::format("{:.3g}", number).c_str(), nullptr); }
  template <class T>
  static void write(OrderedJson& json, const std::optional<T>& value) {
    write(json, *value);
  }
  template <class Struct>
  static void write(OrderedJson& json, const Struct& value) {
    json = OrderedJson::object();
    Writer writer(json);
    each_field(value, writer);
  }

  OrderedJson& object_;
};

/// Reads the fields of an object into a struct, and knows whether each was there and of its type.
class Reader {
 public:
  explicit Reader(const OrderedJson& object) : object_(object) {}
  bool ok() const { return ok_; }

  template <class T>
  void operator()(const char* name, T& value, Absent absent = Absent::never) {
    const auto found = object_.find(name);
    if (found == object_.end())
      ok_ = ok_ && absent == Absent::left_out;
    else if (!(found->is_null() && absent == Absent::null))
      ok_ = ok_ && read(*found, value);
  }

 private:
  static bool read(const OrderedJson& json, std::string& text) {
    if (json.is_string()) text = json.get<std::string>();
    return json.is_string();
  }
  static bool read(const OrderedJson& json, bool& value) {
    if (json.is_boolean()) value = json.get<bool>();
    return json.is_boolean();
  }
  static bool read(const OrderedJson& json, std::int64_t& number) {
    if (json.is_number_integer()) number = json.get<std::int64_t>();
    return json.is_number_integer();
  }
  static bool read(const OrderedJson& json, Index4& index) {
    if (!json.is_array() || json.size() != index.size()) return false;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if (!read(json[axis], index[axis])) return false;
    }
    return true;
  }
  template <class T>
  static bool read(const OrderedJson& json, std::vector<T>& list) {
    if (!json.is_array()) return false;
    return std::all_of(json.begin(), json.end(),
                       [&](const OrderedJson& one) { return read(one, list.emplace_back()); });
  }
  static bool read(const OrderedJson& json, Status& status) {
    if (json == "mistrusted") {  // what version 0.1.0 called it
      status = Status::inconclusive;
      return true;
    }
    const auto found = json.is_string() ? value_named<Status>(json.get<std::string>()) : std::nullopt;
    if (found) status = *found;
    return found.has_value();
  }
  static bool read(const OrderedJson& json, FailureCause& cause) {
    if (json.is_string()) cause = cause_from_text(json.get<std::string>());
    return json.is_string();
  }
  static bool read(const OrderedJson& json, double& number) {
    if (json.is_number())
      number = json.get<double>();
    else if (json == "nan")
      number = kNaN;
    else if (json == "inf" || json == "-inf")
      number = json == "inf" ? kInfinity : -kInfinity;
    else
      return false;
    return true;
  }
  static bool read(const OrderedJson& json, std::vector<std::vector<double>>& cells) {
    if (!json.is_array() || json.size() > kMostCells) return false;
    for (const OrderedJson& line : json) {
      if (!line.is_array() || line.size() > kMostCells) return false;
      std::vector<double>& row = cells.emplace_back();
      for (const OrderedJson& cell : line) {
        if (!cell.is_null() && !read(cell, row.emplace_back())) return false;
        if (cell.is_null()) row.push_back(kNaN);
      }
    }
    return true;
  }
  template <class T>
  static bool read(const OrderedJson& json, std::optional<T>& value) {
    return read(json, value.emplace());
  }
  template <class Struct>
  static bool read(const OrderedJson& json, Struct& value) {
    Reader reader(json);
    if (json.is_object()) each_field(value, reader);
    return json.is_object() && reader.ok();
  }

  const OrderedJson& object_;
  bool ok_ = true;
};

}  // namespace

std::string text_of(const OrderedJson& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_run_header(const OrderedJson& json) { return text_of(json, kKindKey) == kRunKind; }

void require_known_schema(const OrderedJson& header, const std::string& name) {
  const auto schema = header.find("schema");
  if (schema == header.end()) return;
  const std::string text = schema->is_string() ? schema->get<std::string>()
                                               : schema->dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  require_schema(name, text, kVerdictSchema);
}

OrderedJson verdict_to_json(const Verdict& verdict) {
  OrderedJson json = {{kKindKey, kVerdictKind}};
  Writer writer(json);
  each_field(verdict, writer);
  return json;
}

std::optional<Verdict> verdict_from_json(const OrderedJson& json) {
  const auto kind = json.find(kKindKey);
  if (kind == json.end() || (*kind != kVerdictKind && *kind != kKeptKind)) return std::nullopt;
  Verdict verdict;
  Reader reader(json);
  each_field(verdict, reader);
  if (!reader.ok()) return std::nullopt;
  return verdict;
}

}  // namespace attest
