// DeepSpeed's hostfile, and what --include and --exclude leave of it. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

struct HostSlots {
  std::string name;
  std::vector<int> slots;  // numbers of devices, rising

  bool operator==(const HostSlots&) const = default;
};

struct ChosenHosts {
  std::vector<HostSlots> hosts = {};    // in the file's order, none without slots
  std::vector<std::string> notes = {};  // for people: where DeepSpeed itself does something else
};

// "NAME slots=N" a line, whatever follows; '#' at the start of a line makes it a comment. Errors
// name the line. Neither names nor slots are more than 4,096.
Result<std::vector<HostSlots>> parse_hostfile(std::string_view text);

// "NAME[:SLOT[,SLOT...]][@...]", as DeepSpeed's help has it; empty: not given.
Result<ChosenHosts> choose_slots(const std::vector<HostSlots>& hosts, std::string_view include,
                                 std::string_view exclude);

// "0,2", for --slots.
std::string slots_text(const std::vector<int>& slots);

}  // namespace lockstep::launchers
