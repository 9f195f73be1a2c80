// `lockstep run torchrun train.py`: a call whose script is another launcher, as the call that it
// stands for.
#pragma once

#include "cli/options.h"
#include "cli/subcommand.h"

#include <optional>

namespace lockstep::cli {

struct Restated {
  Args words;
  Parsed parsed;
};

// call: of `lockstep run`. nullopt: its script is the user's own. Says what was dropped; variables
// that only workers of this machine need are set for this process.
tl::expected<std::optional<Restated>, Error> restate_launcher(const Call& call, const Table& table);

}  // namespace lockstep::cli
