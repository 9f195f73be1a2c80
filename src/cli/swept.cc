#include "cli/swept.h"

#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "proc/signals.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

// Drops the silence of providers from which this installation never rented: no machine of ours can
// be there. A journal that cannot be read counts as used.
void drop_unused(rent::OnDemand& world, std::vector<cloud::NoAnswer>& silences) {
  std::erase_if(silences, [&](const cloud::NoAnswer& one) {
    return !world.journal().ever_used(one.provider).value_or(true);
  });
}

}  // namespace

Result<rent::OnDemand*> Swept::open() {
  LOCKSTEP_TRY_ASSIGN(world_, rent::OnDemand::open());
  return world_.get();
}

void Swept::begin() {
  keep_guarded(*world_, program_);
  sweep_.emplace(*world_, rent::Sweep::When::due, waits_for(program_, kForLeftovers));
}

void Swept::tell() {
  if (!sweep_) return;
  // The command's answer must not wait for the slowest provider.
  std::fflush(stdout);
  auto swept = sweep_->finish();
  sweep_.reset();
  // Print nothing about an incomplete sweep after Ctrl-C. pause(0) only looks for the signal, which
  // stays pending for end().
  if (!world_->web().pause(std::chrono::milliseconds(0))) return;
  if (!swept) return tell_line(program_, "nothing was swept: " + swept.error().message);
  found_ = std::move(*swept);
  drop_unused(*world_, found_.unheard);
  tell_sweep(program_, found_, world_->web().now_ms());
}

ExitCode Swept::end(ExitCode code) {
  // After Ctrl-C the user does not want to wait for the sweep. The next command sweeps again.
  if (is_stopped(code)) sweep_.reset();
  tell();
  const int signal = world_ ? world_->signals().take() : 0;
  return signal == 0 ? code : stopped_by(signal);
}

ExitCode run_swept(const Call& call, const Table& table,
                   Result<ExitCode> (*act)(const Call&, Swept&)) {
  Swept swept(table.program);
  const auto code = act(call, swept);
  return swept.end(code ? *code : refuse(table.program, code.error()));
}

nlohmann::ordered_json rental_row(const rent::OnDemand& world, const cloud::Rental& rental) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  std::string place;
  for (const cloud::Held* held : rental.live())
    nodes.push_back(
        {{"id", held->machine.id},
         {"address", held->machine.address},
         {"zone", held->machine.zone.empty() ? held->machine.region : held->machine.zone}});
  return {{"name", rental.cluster},
          {"nodes", std::move(nodes)},
          {"micros_per_hour", cloud::rate_now(rental)},
          {"unanswered", cloud::has_unanswered(rental)},
          {"cost_micros", cloud::cost_so_far(rental, world.now_ms())},
          {"created_ms", rental.created_ms},
          {"ends_ms", rent::certain_end_ms(world, rental)},
          {"ended_by", ended_by_name(rent::ended_by(world, rental))},
          {"guard", rental.terms.guard},
          {"closed_ms", rental.closed_ms}};
}

nlohmann::ordered_json swept_json(const cloud::Reconciled& swept) {
  const auto machines = [](const std::vector<cloud::Leftover>& found) {
    auto rows = nlohmann::ordered_json::array();
    for (const cloud::Leftover& one : found)
      rows.push_back({{"provider", one.provider},
                      {"id", one.machine.id},
                      {"region", one.machine.region},
                      {"cluster", one.machine.cluster},
                      {"cost_micros", one.cost},
                      {"error", one.error.message}});
    return rows;
  };
  auto closed = nlohmann::ordered_json::array();
  for (const cloud::Rental& rental : swept.closed)
    closed.push_back(rental.cluster);
  auto unheard = nlohmann::ordered_json::array();
  for (const cloud::NoAnswer& one : swept.unheard)
    unheard.push_back({{"provider", one.provider}, {"region", one.region}, {"why", one.why}});
  return {{"ended", machines(swept.ended)},
          {"foreign", machines(swept.foreign)},
          {"closed", std::move(closed)},
          {"not_ended", swept.not_ended},
          {"unheard", std::move(unheard)}};
}

}  // namespace lockstep::cli
