// The words of the subcommands that our own scripts call and people do not:
// "--name VALUE --flag -- WORD ...". No help, no completion, one way to write each.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::cli {

struct OwnWord {
  const char* name;                      // with its dashes
  std::variant<bool*, std::string*> to;  // a flag, or where its value goes
};

// Returns the words behind "--", at least one. folder: set to the job's folder, which must be given
// and absolute.
Result<std::vector<std::string>> read_own_words(const Args& words, std::string& folder,
                                                std::initializer_list<OwnWord> known);

}  // namespace lockstep::cli
