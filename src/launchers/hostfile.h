// Reads DeepSpeed's hostfile, and applies --include and --exclude. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

struct HostSlots {
  std::string name;
  std::vector<int> slots;  // numbers of devices, ascending

  bool operator==(const HostSlots&) const = default;
};

struct ChosenHosts {
  std::vector<HostSlots> hosts = {};    // in the file's order, hosts without slots left out
  std::vector<std::string> notes = {};  // for people: differences from DeepSpeed
};

// Parses lines "NAME slots=N" and ignores the rest of a line. '#' at the start of a line makes a
// comment. Errors: invalid_input names the line, also for more than 4,096 hosts or slots.
Result<std::vector<HostSlots>> parse_hostfile(std::string_view text);

// Applies a filter "NAME[:SLOT[,SLOT...]][@...]" as DeepSpeed's help describes it; empty: not
// given. Errors: invalid_input (unknown host or slot, both filters given, nothing left).
Result<ChosenHosts> choose_slots(const std::vector<HostSlots>& hosts, std::string_view include,
                                 std::string_view exclude);

// Prints a value for --slots: "0,2".
std::string slots_text(const std::vector<int>& slots);

}  // namespace lockstep::launchers
