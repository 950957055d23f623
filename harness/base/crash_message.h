// A crash of the program says in what it happened: without isolation a backend takes the program with it.
#pragma once

#include <string>

namespace attest {

/// From now on a fatal signal prints a line with the work that is under way, if there is any, and then ends the program
/// as it would have.
void name_work_in_crashes();

/// From now on that line is followed by one that recommends --isolate: of commands that have it.
void recommend_isolation_in_crashes();

/// What is under way as long as it lives: `backend` on a case, named as the user would repeat it. The last one made is
/// the one that a crash names; a few thousand characters are kept.
class CrashContext {
 public:
  CrashContext(const std::string& backend, const std::string& case_line);
  ~CrashContext();
  CrashContext(const CrashContext&) = delete;
  CrashContext& operator=(const CrashContext&) = delete;
};

}  // namespace attest
