// `lockstep run torchrun train.py`: converts a call whose script is another launcher to a call of
// `lockstep run`.
#pragma once

#include "cli/options.h"
#include "cli/subcommand.h"

#include <optional>

namespace lockstep::cli {

struct Restated {
  Args words;     // words for `lockstep run`
  Parsed parsed;  // the same words, parsed
};

// Returns the equivalent call; nullopt: the script is the user's own program. Logs the words that
// were dropped. If the job runs on this machine, sets the launcher's variables in this process.
// call: of `lockstep run`. Errors: the launcher refuses its words.
tl::expected<std::optional<Restated>, Error> restate_launcher(const Call& call, const Table& table);

}  // namespace lockstep::cli
