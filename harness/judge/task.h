// What submissions are judged on: files of the form "decode.task".
//
// A line is a word and its text; # begins a comment:
//   about TEXT        what it is, in a sentence
//   draw N PATTERN    N cases to be right on
//   time W PATTERN    a case to be fast on, of weight W
//   may refuse        a refused case is no failure
//   call NAME WORDS   how a board calls what is submitted in its own format (harness/python/attest/_boards.py)
//   declare WORDS     what submissions may state of themselves: stored_weights=bf16 exp_ulps=4 (permitted.h)
// A pattern is a case line in which a value may be alternatives, a|b, with - for leaving it out, and a number a range,
// a..b of whole numbers or decimal ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "harness/judge/permitted.h"

namespace attest {

struct Task {
  struct Drawn {
    int count = 1;
    std::string pattern;
  };
  struct Timed {
    double weight = 1;
    std::string pattern;
  };
  std::string name, about;
  std::string content;  ///< fingerprint of its file
  std::vector<Drawn> drawn;
  std::vector<Timed> timed;
  bool may_refuse = false;
  std::string call;  ///< empty: submissions in attest's own formats alone
  PermittedStatements permitted;
};

/// A file, one of attest's by its name, or a problem of a board (board_problem.h), which `interpreter` makes a task of.
/// Throws UserError, with the line.
Task read_task(const std::string& name_or_path, const std::string& interpreter = "");

/// A case line of the pattern. A range of whole numbers gives an end of it in one draw of six, the edge of a tile (a
/// multiple of 8, 16, ..., 256, or one beside it) in two, and otherwise small numbers as often as large ones. Throws
/// UserError where the pattern can't be read.
std::string drawn_line(const std::string& pattern, std::mt19937_64& random);

}  // namespace attest
