// Asks the installed accelerate what `accelerate launch ...` would start, for `lockstep run` and
// `lockstep submit`.
#pragma once

#include "base/error.h"
#include "launchers/launch_words.h"

namespace lockstep::cli {

// Returns the launch that accelerate's words mean. given: the result of read_launch(); its `run`
// holds the unread words behind `accelerate launch`. Starts Python, which takes seconds, unless the
// state folder has a kept answer. If Python cannot be run, returns the original command as a single
// process, with a note. Errors: invalid_input (accelerate refuses the words).
Result<launchers::Launch> ask_accelerate(const launchers::Launch& given,
                                         const launchers::ReadOptions& options);

}  // namespace lockstep::cli
