// Makes spans of a job's events.
#include "status/trace.h"

#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace lockstep::status {
namespace {

using Json = nlohmann::ordered_json;

// Bounds for files that anybody may have changed.
constexpr int kMostRanksOfNode = 4096;
constexpr int kMostTraceRank = 1 << 24;
constexpr int kNodeTrack = 0;  // a rank's track is its number + 1

struct TraceLine {
  int track;
  std::int64_t at_ms;
  std::int64_t length_ms;
  Json json;
};

// The spans of one track that have not ended yet, the outermost first. A span ends with all spans
// inside, so spans nest.
class Track {
 public:
  explicit Track(int number) : number_(number) {}

  void begin(std::string name, std::int64_t at_ms, std::string words = {}) {
    open_.push_back({std::move(name), at_ms, std::move(words)});
  }
  // Ends all spans from this depth on.
  void end_to(std::size_t depth, std::int64_t at_ms, int process, std::vector<TraceLine>& lines) {
    while (open_.size() > depth) {
      const Span& span = open_.back();
      const std::int64_t length = std::max<std::int64_t>(at_ms - span.at_ms, 0);
      Json json{{"name", span.name},       {"ph", "X"},
                {"pid", process},          {"tid", number_},
                {"ts", span.at_ms * 1000}, {"dur", length * 1000}};
      if (!span.words.empty()) json["args"] = {{"words", span.words}};
      lines.push_back({number_, span.at_ms, length, std::move(json)});
      open_.pop_back();
    }
  }
  std::size_t depth() const { return open_.size(); }

 private:
  struct Span {
    std::string name;
    std::int64_t at_ms;
    std::string words;
  };
  int number_;
  std::vector<Span> open_;
};

// The tracks of one agent: a track for the node, and one for each rank.
class AgentTrace {
 public:
  // tracks_left: how many ranks may still get a track, of this agent and the next ones.
  AgentTrace(int process, int& tracks_left)
      : process_(process), tracks_left_(tracks_left), node_(kNodeTrack) {}

  void add(const JobEvent& event) {
    now_ms_ = std::max(now_ms_, event.time_ms);  // a clock may have been set back
    if (node_.depth() == 0) node_.begin("run", now_ms_);
    take(event);
  }

  // Returns the lines of all tracks, each span before the spans inside it.
  std::vector<TraceLine> finish() {
    end_ranks();
    node_.end_to(0, now_ms_, process_, lines_);
    std::stable_sort(lines_.begin(), lines_.end(), [](const TraceLine& a, const TraceLine& b) {
      if (a.track != b.track) return a.track < b.track;
      return a.at_ms != b.at_ms ? a.at_ms < b.at_ms : a.length_ms > b.length_ms;
    });
    return std::move(lines_);
  }
  const std::map<int, std::string>& track_names() const { return names_; }

 private:
  void take(const JobEvent& event) {
    switch (event.kind) {
      case JobEventKind::rendezvous_begun:
        end_ranks();
        node_.end_to(1, now_ms_, process_, lines_);
        return node_.begin("rendezvous", now_ms_);
      case JobEventKind::round_formed:
        return node_.end_to(1, now_ms_, process_, lines_);
      case JobEventKind::ranks_started:
        return begin_attempt(event);
      case JobEventKind::first_output:
        if (const auto rank = ranks_.find(event.rank.value_or(-1)); rank != ranks_.end())
          rank->second.end_to(1, now_ms_, process_, lines_);
        return;
      case JobEventKind::hung:
        mark(event, kNodeTrack);
        [[fallthrough]];
      case JobEventKind::training:
      case JobEventKind::waiting:
      case JobEventKind::quiet:
      case JobEventKind::stopping:
        return state(event);
      case JobEventKind::failed:
        mark(event, event.rank && ranks_.contains(*event.rank) ? *event.rank + 1 : kNodeTrack);
        [[fallthrough]];
      case JobEventKind::rank_ended:
        return end_rank(event.rank.value_or(-1));
      case JobEventKind::workers_ended:
        end_ranks();
        return node_.end_to(1, now_ms_, process_, lines_);
      case JobEventKind::straggler:
      case JobEventKind::gpu_fault:
      case JobEventKind::restarting:
      case JobEventKind::nodes_changed:
      case JobEventKind::ended:
      case JobEventKind::other:
        return mark(event, kNodeTrack);
      case JobEventKind::started:
      case JobEventKind::hang_over:
      case JobEventKind::straggler_over:
        return;
    }
  }

  void begin_attempt(const JobEvent& event) {
    end_ranks();
    node_.end_to(1, now_ms_, process_, lines_);
    node_.begin(fmt::format("attempt {}", event.attempt), now_ms_, event.words);
    node_.begin("start", now_ms_);
    stopping_ = false;
    const int first = static_cast<int>(
        std::clamp(event.number_of("first_rank"), 0.0, static_cast<double>(kMostTraceRank)));
    const int most = std::min(kMostRanksOfNode, tracks_left_);
    const int count =
        static_cast<int>(std::clamp(event.number_of("ranks"), 0.0, static_cast<double>(most)));
    tracks_left_ -= count;
    for (int rank = first; rank < first + count; ++rank) {
      names_[rank + 1] = fmt::format("rank {}", rank);
      Track& track = ranks_.emplace(rank, Track(rank + 1)).first->second;
      track.begin(fmt::format("rank {}", rank), now_ms_);
      track.begin("until its first output", now_ms_);
    }
    count_ranks();
  }

  // What all ranks of the node do, inside the attempt.
  void state(const JobEvent& event) {
    if (node_.depth() < 2 || stopping_) return;
    node_.end_to(2, now_ms_, process_, lines_);
    node_.begin(std::string(event_word(event.kind)), now_ms_, event.words);
    stopping_ = event.kind == JobEventKind::stopping;
  }

  void end_rank(int rank) {
    const auto found = ranks_.find(rank);
    if (found == ranks_.end()) return;
    found->second.end_to(0, now_ms_, process_, lines_);
    ranks_.erase(found);
    count_ranks();
  }

  void end_ranks() {
    if (ranks_.empty()) return;
    for (auto& [rank, track] : ranks_)
      track.end_to(0, now_ms_, process_, lines_);
    ranks_.clear();
    count_ranks();
  }

  void mark(const JobEvent& event, int track) {
    Json json{{"name", event_word(event.kind)},
              {"ph", "i"},
              {"s", "p"},
              {"pid", process_},
              {"tid", track},
              {"ts", now_ms_ * 1000},
              {"args", {{"words", event.words}}}};
    lines_.push_back({track, now_ms_, 0, std::move(json)});
  }

  void count_ranks() {
    Json json{{"name", "running ranks"},
              {"ph", "C"},
              {"pid", process_},
              {"ts", now_ms_ * 1000},
              {"args", {{"ranks", ranks_.size()}}}};
    lines_.push_back({kNodeTrack, now_ms_, 0, std::move(json)});
  }

  int process_;
  int& tracks_left_;
  Track node_;
  std::map<int, Track> ranks_;  // those that run
  std::map<int, std::string> names_ = {{kNodeTrack, "node"}};
  std::vector<TraceLine> lines_;
  std::int64_t now_ms_ = 0;
  bool stopping_ = false;
};

Json name_line(const char* what, int process, int track, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_json(std::vector<JobEvent> events, int tracks_left) {
  std::stable_sort(events.begin(), events.end(), [](const JobEvent& a, const JobEvent& b) {
    if (a.node != b.node) return a.node < b.node;
    return a.agent != b.agent ? a.agent < b.agent : a.number < b.number;
  });
  Json lines = Json::array();
  int process = 0;
  for (auto first = events.begin(); first != events.end();) {
    const auto last = std::find_if(first, events.end(), [&first](const JobEvent& event) {
      return event.node != first->node || event.agent != first->agent;
    });
    AgentTrace trace(++process, tracks_left);
    for (auto event = first; event != last; ++event)
      trace.add(*event);
    const auto spans = trace.finish();
    lines.push_back(name_line("process_name", process, 0, first->node));
    for (const auto& [track, name] : trace.track_names())
      lines.push_back(name_line("thread_name", process, track, name));
    for (const TraceLine& line : spans)
      lines.push_back(line.json);
    first = last;
  }
  return codec::print_json(Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(lines)}});
}

}  // namespace lockstep::status
