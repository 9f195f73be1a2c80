// `lockstep run accelerate launch ...`: the accelerate that is installed is asked once what it
// would start.
#pragma once

#include "base/error.h"
#include "launchers/launch_words.h"

namespace lockstep::cli {

// given: as read_launch() has left it, with accelerate's words unread.
Result<launchers::Launch> ask_accelerate(const launchers::Launch& given,
                                         const launchers::ReadOptions& options);

}  // namespace lockstep::cli
