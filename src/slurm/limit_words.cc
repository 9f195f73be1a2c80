// Explains the names of Slurm's limits. About 150 names exist, made of parts: QOS or association,
// group, most or least, resource, minutes ("Mins" in names since 24.05), and whose jobs count.
#include "base/text.h"
#include "slurm/pending_reason.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::slurm {
namespace {

struct Word {
  std::string_view part;
  std::string_view words;
};

// Longer names come before their own beginnings.
constexpr std::array kResources = {
    Word{"SubmitJobs", "jobs in the queue"},
    Word{"SubmitJob", "jobs in the queue"},
    Word{"WallDuration", "time"},
    Word{"Wall", "time"},
    Word{"Jobs", "jobs at once"},
    Word{"Job", "jobs at once"},
    Word{"Cpu", "CPUs"},
    Word{"CPU", "CPUs"},
    Word{"Memory", "memory"},
    Word{"Mem", "memory"},
    Word{"Node", "nodes"},
    Word{"GRES", "GPUs (or other GRES)"},
    Word{"License", "licenses"},
    Word{"Billing", "billing units"},
    Word{"Energy", "energy"},
    Word{"BB", "burst buffer space"},
    Word{"Unknown", "of some resource"},
};

// Removes a part from the front, if it is there.
bool take(std::string_view& text, std::string_view part) {
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

std::string_view take_resource(std::string_view& text) {
  for (const Word& each : kResources)
    if (take(text, each.part)) return each.words;
  return {};
}

std::string_view take_whose(std::string_view& text, std::string_view of_all) {
  constexpr std::array kWhose = {
      Word{"PerJob", "each job"},
      Word{"PerUser", "each user"},
      Word{"PerNode", "each job on a node"},
      Word{"PerAccount", "each account"},
      Word{"PerAcct", "each account"},
  };
  for (const Word& each : kWhose)
    if (take(text, each.part)) return each.words;
  return of_all;
}

}  // namespace

std::string limit_words(std::string_view reason) {
  std::string_view rest = reason;
  std::string_view who = "the QOS";
  if (take(rest, "Association") || take(rest, "Assoc"))
    who = "the account";
  else if (!take(rest, "QOS") && !rest.starts_with("Max"))
    return {};
  const bool group = take(rest, "Grp");
  const bool least = !group && take(rest, "Min");
  if (!group && !least) take(rest, "Max");
  std::string_view what = take_resource(rest);
  if (what.empty() && (take(rest, "Resource") || take(rest, "Time"))) what = "of some resource";
  if (what.empty()) return {};
  const bool running = take(rest, "Run");
  const bool minutes = take(rest, "Minutes") || take(rest, "Mins");
  const std::string_view whose = take_whose(rest, group ? "all its jobs together"
                                                  : what.starts_with("jobs") ? "each user"
                                                                             : "a job");
  // Leftover text means an unknown name: better no words than wrong ones.
  if (rest != "" && rest != "Limit" && rest != "NotSatisfied") return {};
  if (least) return fmt::format("{} wants jobs to ask for more {}", who, what);
  const std::string_view span = !minutes  ? ""
                                : running ? ", times the minutes that running jobs may still use"
                                          : ", times minutes";
  return fmt::format("{} allows {} only so {} {}{}", who, whose,
                     what == "time" || what == "memory" || what == "energy" ? "much" : "many", what,
                     span);
}

}  // namespace lockstep::slurm
