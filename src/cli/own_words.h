// Reads the words of subcommands that only our own scripts call: "--name VALUE --flag -- WORD ...".
// These subcommands need no help, completion or short forms, and therefore have no option table.
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
  std::variant<bool*, std::string*> to;  // destination of a flag or a value
};

// Sets the destinations and returns the words behind "--", at least one. folder: set to the job's
// folder, which must be given and absolute. Errors: invalid_input (also for an unknown word).
Result<std::vector<std::string>> read_own_words(const Args& words, std::string& folder,
                                                std::initializer_list<OwnWord> known);

}  // namespace lockstep::cli
