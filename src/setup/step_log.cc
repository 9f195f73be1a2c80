#include "setup/step_log.h"

#include "codec/json.h"
#include "codec/json_members.h"

#include <algorithm>

namespace lockstep::setup {
namespace {

using nlohmann::json;

constexpr std::size_t kMostEntries = 2000;

}  // namespace

StepLog StepLog::read(std::string_view text) {
  const json record = codec::parse_json(text, {.bytes = 64UL << 20});
  StepLog log;
  const auto entries = record.is_object() ? record.find("steps") : record.end();
  if (!record.is_object() || entries == record.end() || !entries->is_array()) return log;
  log.interpreter_ = codec::text_member(record, "interpreter");
  log.environment_ = codec::text_member(record, "environment");
  log.running_ = codec::text_member(record, "running");
  log.epoch_ = codec::integer_member(record, "epoch");
  for (const json& each : *entries) {
    // A damaged log must not skip a step: begin with an empty one.
    if (!each.is_object() || log.entries_.size() == kMostEntries) return {};
    log.entries_.push_back({codec::text_member(each, "step"), codec::text_member(each, "digest"),
                            codec::integer_member(each, "held_at"),
                            codec::integer_member(each, "changed_at")});
  }
  return log;
}

std::string StepLog::print() const {
  json entries = json::array();
  for (const Entry& each : entries_)
    entries.push_back({{"step", each.step},
                       {"digest", each.digest},
                       {"held_at", each.held_at},
                       {"changed_at", each.changed_at}});
  return codec::print_json(json{{"interpreter", interpreter_},
                                {"environment", environment_},
                                {"running", running_},
                                {"epoch", epoch_},
                                {"steps", std::move(entries)}});
}

void StepLog::open(const std::string& interpreter, const std::string& environment) {
  const std::string was_running = running_;
  running_.clear();
  // A change without a running step was made by the user or by another tool.
  if (interpreter != interpreter_ || (environment != environment_ && was_running.empty()))
    entries_.clear();
  if (!was_running.empty()) {
    Entry& broken = entry(was_running);
    broken.digest.clear();
    // The killed step may have changed packages: a new epoch makes the steps after it run again.
    if (environment != environment_) broken.changed_at = ++epoch_;
  }
  interpreter_ = interpreter;
  environment_ = environment;
}

bool StepLog::holds(std::span<const std::string> steps, std::size_t index,
                    const std::string& digest) const {
  const auto own = std::find_if(entries_.begin(), entries_.end(),
                                [&](const Entry& each) { return each.step == steps[index]; });
  if (own == entries_.end() || own->digest.empty() || own->digest != digest) return false;
  const auto behind = steps.subspan(index + 1);
  return std::all_of(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.changed_at <= own->held_at ||
           std::find(behind.begin(), behind.end(), each.step) != behind.end();
  });
}

void StepLog::starting(const std::string& step) {
  running_ = step;
}

void StepLog::finished(const std::string& step, const std::string& digest,
                       const std::string& environment) {
  running_.clear();
  // Only a real change begins a new epoch: a step that changed nothing leaves all others valid.
  Entry& own = entry(step);
  if (environment != environment_) own.changed_at = ++epoch_;
  environment_ = environment;
  // A failed step has an empty digest, which no later install matches.
  own.digest = digest;
  own.held_at = epoch_;
}

StepLog::Entry& StepLog::entry(const std::string& step) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.step == step; });
  if (found != entries_.end()) return *found;
  // Forget all steps: forgetting one could let other steps seem to hold.
  if (entries_.size() == kMostEntries) entries_.clear();
  entries_.push_back({step, {}, 0, 0});
  return entries_.back();
}

}  // namespace lockstep::setup
