// printed_numbers ATTEST FOLDER: every number of the documents in FOLDER/numbers.txt is printed by the command that
// FOLDER/printed.tsv names, at the place that it names, or has a reason there. tests/golden/README.md has the format.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Cells = std::vector<std::string>;

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  for (std::size_t from = 0;;) {
    const std::size_t at = text.find(by, from);
    parts.push_back(text.substr(from, at - from));
    if (at == std::string::npos) return parts;
    from = at + by.size();
  }
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// "0-3" or "0,2,3", in the order given.
std::vector<std::size_t> ranges(const std::string& text) {
  std::vector<std::size_t> result;
  for (const std::string& part : split(text, ",")) {
    const std::vector<std::string> ends = split(part, "-");
    for (std::size_t n = std::stoul(ends.front()); n <= std::stoul(ends.back()); ++n) result.push_back(n);
  }
  return result;
}

/// A decimal number as it is written: 0.digits * 10^exponent, digits without zeros at either end.
struct Decimal {
  std::string sign, digits;
  long exponent = 0;
  std::size_t written = 0;  ///< digits of the mantissa
  bool scientific = false;
  bool operator==(const Decimal& o) const { return sign == o.sign && digits == o.digits && exponent == o.exponent; }

  void normalise() {
    const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
    digits.erase(0, zeros);
    exponent -= static_cast<long>(zeros);
    while (!digits.empty() && digits.back() == '0') digits.pop_back();
    if (digits.empty()) sign.clear(), exponent = 0;
  }

  explicit Decimal(const std::string& text) {
    std::string rest = text;
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
      if (rest[0] == '-') sign = "-";
      rest.erase(0, 1);
    }
    if (rest == "inf") {
      digits = "inf";
      return;
    }
    if (const std::size_t e = rest.find_first_of("eE"); e != std::string::npos) {
      exponent = std::stol(rest.substr(e + 1));
      scientific = true;
      rest.erase(e);
    }
    const std::size_t point = std::min(rest.find('.'), rest.size());
    exponent += static_cast<long>(point);
    rest.erase(std::remove(rest.begin(), rest.end(), '.'), rest.end());
    if (rest.empty() || rest.find_first_not_of("0123456789") != std::string::npos)
      throw std::runtime_error("\"" + text + "\" is no number");
    digits = rest;
    written = rest.size();
    normalise();
  }

  /// Half away from zero, to `count` significant digits.
  void round_to(std::size_t count) {
    if (digits.size() <= count) return;
    const bool up = digits[count] >= '5';
    digits.resize(count);
    for (std::size_t n = count; up; --n) {
      if (n == 0) {
        digits.insert(digits.begin(), '1');
        ++exponent;
        break;
      }
      if (digits[n - 1] != '9') {
        ++digits[n - 1];
        break;
      }
      digits[n - 1] = '0';
    }
    normalise();
  }
};

/// A number with an exponent says how many digits it has; others may have lost zeros at the end, so that the command
/// must print with as many digits as the document did.
bool same_number(const std::string& wanted, const std::string& printed) {
  const Decimal want(wanted);
  Decimal got(printed);
  if (want.scientific) got.round_to(want.written);
  return want == got;
}

/// A number that the document breaks off: the digits that are there.
bool begins_with(const std::string& wanted, const std::string& printed) {
  const Decimal want(wanted), got(printed);
  if (want.digits.empty()) return printed.starts_with(wanted);
  return want.sign == got.sign && got.digits.starts_with(want.digits);
}

Cells numbers_in(const std::string& phrase) {
  Cells found;
  for (std::size_t at = 0; at < phrase.size();) {
    const std::size_t stop = std::min(phrase.find_first_not_of("0123456789.", at), phrase.size());
    if (phrase[at] >= '0' && phrase[at] <= '9') {
      found.push_back(phrase.substr(at, stop - at));
      while (found.back().back() == '.') found.back().pop_back();
    }
    at = std::max(stop, at + 1);
  }
  return found;
}

struct Output {
  std::string text;
  std::vector<std::pair<std::string, std::vector<Cells>>> stages;  ///< title line, cells of each named row

  const Cells& row(const std::string& title, std::size_t n) const {
    for (const auto& [line, rows] : stages) {
      if (line.starts_with(title)) {
        if (n < rows.size()) return rows[n];
        throw std::runtime_error("\"" + line + "\" has no row " + std::to_string(n));
      }
    }
    throw std::runtime_error("no stage begins with \"" + title + "\"");
  }
};

Output run(const std::string& attest, const std::string& arguments) {
  const std::string command = "'" + attest + "' trace " + arguments + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("can't run " + command);
  Output output;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe)) output.text += buffer.data();
  if (pclose(pipe) != 0)
    throw std::runtime_error("attest trace " + arguments + " failed: " + output.text.substr(0, 200));
  bool inside = false;
  for (const std::string& line : split(output.text, "\n")) {
    if (line.find("  [") != std::string::npos && line.ends_with("]")) {
      output.stages.push_back({line, {}});
      inside = true;
    } else if (line.empty()) {
      inside = false;
    } else if (inside && line.starts_with("  ") && line[2] != ' ') {
      Cells cells;
      for (const std::string& part : split(line.substr(2), "  ")) {
        if (!trimmed(part).empty()) cells.push_back(trimmed(part));
      }
      cells.erase(cells.begin());
      output.stages.back().second.push_back(std::move(cells));
    }
  }
  return output;
}

struct Number {
  std::string document;
  std::size_t line = 0, at = 0;
  std::string text;
  int listed = 0;
  std::string where() const {
    return document + " line " + std::to_string(line) + ", number " + std::to_string(at) + " (" + text + ")";
  }
};

class List {
 public:
  List(std::string attest, const std::string& folder) : attest_(std::move(attest)) {
    std::ifstream documents(folder + "/numbers.txt"), list(folder + "/printed.tsv");
    if (!documents || !list) throw std::runtime_error(folder + ": numbers.txt and printed.tsv are wanted");
    for (std::string line; std::getline(documents, line);) read_numbers(line);
    for (std::string line; std::getline(list, line);) {
      ++line_;
      if (line.empty() || line[0] == '#') continue;
      try {
        check(split(line, "\t"));
      } catch (const std::exception& error) {
        complain("printed.tsv line " + std::to_string(line_) + ": " + error.what());
      }
    }
    for (const Number& number : numbers_) {
      if (number.listed != 1)
        complain(number.where() + (number.listed ? " is listed twice" : " is missing from printed.tsv"));
    }
  }

  int finish() const {
    std::cout << numbers_.size() << " numbers: " << printed_ << " printed by " << outputs_.size() << " commands, "
              << reasons_ << " with a reason; " << faults_ << " faults\n";
    return faults_ == 0 && printed_ > 0 ? 0 : 1;
  }

 private:
  void complain(const std::string& fault) {
    ++faults_;
    std::cout << fault << "\n";
  }

  void read_numbers(const std::string& line) {
    if (line.empty() || line[0] == '#') return;
    std::istringstream in(line);
    Number number;
    std::string colon;
    if (!(in >> number.document >> number.line >> colon) || colon != ":")
      throw std::runtime_error("numbers.txt: " + line);
    while (in >> number.text) {
      ++number.at;
      numbers_.push_back(number);
    }
  }

  void check(const std::vector<std::string>& fields) {
    if (fields.size() != 5) throw std::runtime_error("five columns are wanted");
    const std::vector<std::size_t> lines = ranges(fields[1]);
    std::vector<Number*> range, chosen;
    for (Number& number : numbers_) {
      if (number.document == fields[0] && number.line >= lines.front() && number.line <= lines.back())
        range.push_back(&number);
    }
    if (fields[2] == "*")
      chosen = range;
    else
      for (std::size_t n : ranges(fields[2])) chosen.push_back(range.at(n - 1));
    if (chosen.empty()) throw std::runtime_error("these lines hold no number");
    for (Number* number : chosen) ++number->listed;
    if (trimmed(fields[4]).empty()) throw std::runtime_error("neither a place nor a reason");
    if (fields[3] == "-") {
      reasons_ += chosen.size();
      return;
    }
    compare(chosen, fields[3], fields[4]);
  }

  void compare(const std::vector<Number*>& chosen, const std::string& command, std::string place) {
    if (!outputs_.contains(command)) outputs_.emplace(command, run(attest_, command));
    const Output& output = outputs_.at(command);
    Cells printed;
    bool broken_off = false;
    if (place.starts_with("text: ")) {
      place.erase(0, 6);
      if (output.text.find(place) == std::string::npos) throw std::runtime_error("not printed: " + place);
      printed = numbers_in(place);
    } else {
      broken_off = place.starts_with("begins: ");
      if (broken_off) place.erase(0, 8);
      const std::vector<std::string> parts = split(place, " | ");
      if (parts.size() != 3) throw std::runtime_error("a place is \"stage | rows | columns\"");
      for (std::size_t r : ranges(parts[1])) {
        const Cells& row = output.row(parts[0], r);
        for (std::size_t c : ranges(parts[2])) printed.push_back(row.at(c));
      }
    }
    if (printed.size() != chosen.size()) {
      throw std::runtime_error("the place has " + std::to_string(printed.size()) + " numbers, the document " +
                               std::to_string(chosen.size()));
    }
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      const std::string& wanted = chosen[n]->text;
      if (broken_off ? begins_with(wanted, printed[n]) : same_number(wanted, printed[n]))
        ++printed_;
      else
        complain(chosen[n]->where() + ": attest trace " + command + " prints " + printed[n] + " at " + place);
    }
  }

  std::string attest_;
  std::vector<Number> numbers_;
  std::map<std::string, Output> outputs_;
  std::size_t line_ = 0, printed_ = 0, reasons_ = 0, faults_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "printed_numbers ATTEST FOLDER\n";
    return 2;
  }
  try {
    return List(argv[1], argv[2]).finish();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
