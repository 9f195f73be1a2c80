#include "slurm/job_state.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::slurm {
namespace {

struct Row {
  std::string_view name;
  std::string_view letters;  // Slurm's abbreviation
  JobPhase phase;
};

constexpr std::array kRows = {
    Row{"PENDING", "PD", JobPhase::waiting},       Row{"RUNNING", "R", JobPhase::running},
    Row{"SUSPENDED", "S", JobPhase::running},      Row{"COMPLETED", "CD", JobPhase::ended},
    Row{"CANCELLED", "CA", JobPhase::ended},       Row{"FAILED", "F", JobPhase::ended},
    Row{"TIMEOUT", "TO", JobPhase::ended},         Row{"NODE_FAIL", "NF", JobPhase::ended},
    Row{"PREEMPTED", "PR", JobPhase::ended},       Row{"BOOT_FAIL", "BF", JobPhase::ended},
    Row{"DEADLINE", "DL", JobPhase::ended},        Row{"OUT_OF_MEMORY", "OOM", JobPhase::ended},
    Row{"CONFIGURING", "CF", JobPhase::running},   Row{"COMPLETING", "CG", JobPhase::ending},
    Row{"STAGE_OUT", "SO", JobPhase::ending},      Row{"SIGNALING", "SI", JobPhase::running},
    Row{"STOPPED", "ST", JobPhase::running},       Row{"RESIZING", "RS", JobPhase::running},
    Row{"POWER_UP_NODE", "PU", JobPhase::running}, Row{"RECONFIG_FAIL", "RG", JobPhase::running},
    Row{"LAUNCH_FAILED", "LF", JobPhase::waiting}, Row{"REQUEUED", "RQ", JobPhase::waiting},
    Row{"REQUEUE_FED", "RF", JobPhase::waiting},   Row{"REQUEUE_HOLD", "RH", JobPhase::waiting},
    Row{"RESV_DEL_HOLD", "RD", JobPhase::waiting}, Row{"SPECIAL_EXIT", "SE", JobPhase::waiting},
    Row{"EXPEDITING", "none", JobPhase::waiting},  // since 25.11: a requeue on the same nodes
    Row{"REVOKED", "RV", JobPhase::ended},         // a sibling job runs in another cluster
};

// Finds a state's row. sacct's tables cut long names and append a plus ("COMPLETI+"), so a cut name
// matches by its beginning.
const Row* row_of(std::string_view name, bool cut) {
  const auto is_it = [&](const Row& row) {
    return row.name == name || row.letters == name ||
           (cut && name.size() >= 4 && row.name.starts_with(name));
  };
  const auto found = std::find_if(kRows.begin(), kRows.end(), is_it);
  return found == kRows.end() ? nullptr : &*found;
}

// Ranks phases. A flag tells more than the base state printed beside it: "RUNNING+COMPLETING" is
// ending.
int weight(JobPhase phase) {
  switch (phase) {
    case JobPhase::ending:
      return 4;
    case JobPhase::waiting:
      return 3;
    case JobPhase::running:
      return 2;
    case JobPhase::ended:
      return 1;
    case JobPhase::unknown:
      break;
  }
  return 0;
}

}  // namespace

SlurmState parse_job_state(std::string_view text) {
  SlurmState state;
  std::string first = to_upper(strip(text));
  if (const std::size_t by = first.find(" BY "); by != std::string::npos) {
    state.cancelled_by = std::string(strip(strip(text).substr(by + 4)));
    first.resize(by);
  }
  // A star marks a node that does not answer.
  while (first.ends_with('*'))
    first.pop_back();
  const bool cut = first.ends_with('+');
  while (first.ends_with('+'))
    first.pop_back();
  // Some of Slurm's outputs join flags with commas, others with plus signs.
  std::replace(first.begin(), first.end(), ',', '+');
  state.name = first;
  int best = -1;
  for (const std::string& name : split(first, '+')) {
    const Row* row = row_of(strip(name), cut);
    if (row == nullptr || weight(row->phase) <= best) continue;
    best = weight(row->phase);
    state.name = row->name;
    state.phase = row->phase;
  }
  return state;
}

}  // namespace lockstep::slurm
