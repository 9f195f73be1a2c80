// The state of a job on the status page at one moment, and the frames of server-sent events that
// carry the state to viewers. Pure.
#pragma once

#include "looks/node_line.h"
#include "looks/row.h"
#include "page/history.h"
#include "status/goodput.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::page {

struct PageAttempt {
  std::int64_t number = 1;
  std::int64_t start_ms = 0;
  std::optional<std::int64_t> end_ms = {};  // nullopt: it runs
  std::string end = {};                     // "worker", "signal" ...; "success"
  std::string why = {};                     // one line
  std::vector<std::string> others = {};     // where the ranks were when they were stopped
  int nodes = 1;
  int world = 1;
};

struct PageState {
  std::int64_t now_ms = 0;
  std::int64_t start_ms = 0;  // of the agent
  std::string version = {};
  std::string run_id = {};
  std::string logs = {};  // the folder of the attempt's logs; "": none
  int restarts = 0;
  int max_restarts = 0;
  std::optional<std::string> ended = {};   // how the job ended, one line
  std::vector<PageAttempt> attempts = {};  // the newest, at most kMostShown
  std::int64_t attempts_total = 0;
  std::int64_t events = 0;  // the number of the newest event
  looks::NodeRows rows = {};
  looks::NodeLines nodes = {};
  status::Goodput goodput = status::Goodput(status::Goodput::TimePoint{});
};
inline constexpr std::size_t kMostShownAttempts = 100;  // the limit of PageState::attempts

// A line of JSON.
std::string state_json(const PageState& state);

// A frame of text/event-stream. data: any text; each of its lines becomes a field.
std::string event_frame(std::string_view name, std::string_view data);

}  // namespace lockstep::page
