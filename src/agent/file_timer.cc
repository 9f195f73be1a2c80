// Parses the requests of torch.distributed.elastic.timer and keeps its table of timers.
#include "agent/file_timer.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>

namespace lockstep::agent {
namespace {

struct Request {
  pid_t pid = 0;
  std::string scope_id;
  double expiration_time = 0;
  int signal = 0;
};

std::optional<std::int64_t> integer(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<Request> parse_request(std::string_view text) {
  const nlohmann::json json = codec::parse_json(text, {.bytes = FileTimerTable::kLineLimit});
  if (!json.is_object()) return std::nullopt;
  const auto pid = integer(json, "pid");
  const auto signal = integer(json, "signal");
  const auto scope = json.find("scope_id");
  const auto expiration = json.find("expiration_time");
  // pid 1 and below are never a worker. kill(0) and kill(-1) would signal whole groups.
  if (!pid || *pid <= 1 || *pid > std::numeric_limits<pid_t>::max()) return std::nullopt;
  // A signal of 0 or less is legal and kills nobody (take_expired()). Linux has 64 signals.
  if (!signal || *signal > 64 || *signal < INT32_MIN) return std::nullopt;
  if (scope == json.end() || !scope->is_string()) return std::nullopt;
  if (expiration == json.end() || !expiration->is_number()) return std::nullopt;
  return Request{static_cast<pid_t>(*pid), scope->get<std::string>(), expiration->get<double>(),
                 static_cast<int>(*signal)};
}

}  // namespace

void FileTimerTable::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    // Keep one byte more than the limit: a line of exactly the limit passes, and a longer line is
    // noticed.
    if (!skipping_) partial_ += piece.substr(0, kLineLimit + 1 - partial_.size());
    if (partial_.size() > kLineLimit) {
      ignore(partial_, "it is too long");
      partial_.clear();
      skipping_ = true;
    }
    if (end == std::string_view::npos) return;
    if (!skipping_) line(partial_);
    partial_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void FileTimerTable::line(std::string_view text) {
  if (strip(text).empty()) return;
  const auto request = parse_request(text);
  if (!request) return ignore(text, "it is not a request");
  const std::pair key(request->pid, request->scope_id);
  if (request->expiration_time < 0) {
    timers_.erase(key);
    return;
  }
  // A bound on memory: a worker may write any number of requests.
  if (timers_.size() >= kTimerLimit && !timers_.contains(key))
    return ignore(text, "there are too many timers");
  timers_[key] = Timer{request->expiration_time, request->signal};
}

void FileTimerTable::ignore(std::string_view text, std::string_view why) {
  // Warn once only: a broken writer would flood the console ten times a second.
  if (warned_) return;
  warned_ = true;
  warning_ = fmt::format("watchdog: ignored a line in the timer file because {}: {}", why,
                         printable(text));
}

std::vector<FileTimerTable::Expired> FileTimerTable::take_expired(double now) {
  std::map<pid_t, Expired> due;  // signal 0: only timers without a signal so far
  for (const auto& [key, timer] : timers_) {
    if (timer.expiration_time > now) continue;
    Expired& first = due[key.first];
    if (timer.signal <= 0) continue;
    if (first.signal == 0 || timer.expiration_time < first.expiration_time)
      first = Expired{key.first, key.second, timer.expiration_time, timer.signal};
  }
  std::vector<Expired> result;
  for (const auto& [pid, first] : due) {
    forget(pid);
    if (first.signal > 0) result.push_back(first);
  }
  return result;
}

std::vector<pid_t> FileTimerTable::pids() const {
  std::vector<pid_t> result;
  for (const auto& [key, timer] : timers_)
    if (result.empty() || result.back() != key.first) result.push_back(key.first);
  return result;
}

void FileTimerTable::forget(pid_t pid) {
  auto at = timers_.lower_bound({pid, std::string()});
  while (at != timers_.end() && at->first.first == pid)
    at = timers_.erase(at);
}

std::optional<std::string> FileTimerTable::take_warning() {
  return std::exchange(warning_, std::nullopt);
}

}  // namespace lockstep::agent
