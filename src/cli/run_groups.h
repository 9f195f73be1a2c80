// The groups of options of `lockstep run`: every option of torchrun 2.14, and Lockstep's own. Each
// row names the field of launch::RawOptions that it fills. The field's type gives the value's kind.
#pragma once

#include "cli/options.h"
#include "launch/raw_options.h"

namespace lockstep::cli {

using Raw = launch::RawOptions;

Group topology_group();
Group rendezvous_group();
Group command_group();
Group restarts_group();
Group supervision_group();
Group hang_group();
Group events_group();
Group page_group();
Group logs_group();
Group container_group();
Group placement_group();

}  // namespace lockstep::cli
