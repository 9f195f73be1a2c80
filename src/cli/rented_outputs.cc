// Outputs (--back) of a job on rented machines: brought from the machines, kept
// on a held machine if bringing fails, and copied to the next machines.
#include "base/date_text.h"
#include "base/text.h"
#include "cli/ground.h"
#include "cli/on_demand.h"
#include "cli/rented_course.h"
#include "host/identity.h"
#include "project/sync_tree.h"
#include "rent/gang.h"
#include "rent/rented_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace lockstep::cli {

Status RentedCourse::bring_back() {
  if (options_.back.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, own_places());
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
  if (!ground.project)
    return fail(Errc::invalid_input, "--back brings back what lies in the synced project",
                "leave --sync none out");
  project::SyncOptions settings;
  settings.remark = [this](const std::string& text) { tell(text); };
  for (const std::string& path : options_.back) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, project::path_in_project(*ground.project, path));
    LOCKSTEP_TRY_ASSIGN(const auto host,
                        project::sync_back(places.front(), *ground.project, below, settings));
    if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
    tell(fmt::format("{}: {} files, {} brought back", path, host.files,
                     project::size_text(host.bytes)));
  }
  return {};
}

// Copies the outputs brought so far to the next machines: the project's files do not include what
// git ignores.
Status RentedCourse::take_along() {
  if (!job_.brought) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, own_places());
  LOCKSTEP_TRY_ASSIGN(const Ground ground, ground_of(remote_, false));
  for (const std::string& path : options_.back) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, project::path_in_project(*ground.project, path));
    const std::string source = ground.project->root + "/" + below;
    std::error_code error;
    if (!std::filesystem::is_directory(source, error)) continue;
    LOCKSTEP_TRY_ASSIGN(const project::Project outputs, project::find_project(".", source));
    project::SyncOptions settings;
    settings.destination = ground.project->name + "/" + below;
    settings.force = true;
    settings.everything = true;
    LOCKSTEP_TRY_ASSIGN(const auto report, project::sync_project(places, outputs, settings));
    for (const auto& host : report.hosts)
      if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
  }
  return {};
}

// Keeps the machines for --hold: outputs that are nowhere else are worth more than the cost.
Status RentedCourse::hold_machines(const std::string& why) {
  LOCKSTEP_TRY_ASSIGN(const auto places, own_places());
  LOCKSTEP_TRY_ASSIGN(const auto held, rent::hold_leases(places, rental_.terms.hold_s));
  for (const auto& answer : held)
    if (!answer.error.empty()) return fail(Errc::unavailable, answer.error);
  const cloud::Micros cost = cloud::cost_of(cloud::rate_now(rental_), rental_.terms.hold_s * 1000);
  tell(fmt::format("outputs are not here: {}; '{}' is held for {}, which costs {} USD", why,
                   rental_.cluster, time_words(rental_.terms.hold_s), cloud::dollars_text(cost)));
  const std::string where =
      job_.client.empty() ? "" : fmt::format("in {} on {}: ", job_.folder, host::hostname());
  tell(fmt::format("{0}lockstep sync {1} --back PATH brings them, lockstep down {1} ends it", where,
                   rental_.cluster));
  return {};
}

// Returns whether node 0 runs, whose files --back brings. true also if the provider does not
// answer.
bool RentedCourse::first_runs() {
  cloud::Rental now = rental_;
  if (!rent::look_only(world_, now)) return true;
  const auto live = now.live();
  return std::any_of(live.begin(), live.end(), [](const cloud::Held* held) {
    return held->node == 0 && held->machine.state == cloud::Machine::State::running;
  });
}

// Brings the saved outputs of a job with preempted machines.
jobs::rented::Seen RentedCourse::save() {
  const Status brought =
      ended_.gone && !first_runs() ? fail(Errc::unavailable, "its machine is gone") : bring_back();
  job_.brought = job_.brought || (brought && !options_.back.empty());
  if (!brought) tell("what --back names was not brought back: " + brought.error().message);
  return {.whole = brought.has_value()};
}

}  // namespace lockstep::cli
