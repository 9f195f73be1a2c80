// Texts and requests of the board.
#include "rendezvous/round_board.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {
namespace {

using nlohmann::json;
// Other nodes write these texts, so their sizes are bounded.
constexpr std::size_t kMostBoardBytes = 256U << 10;
constexpr std::size_t kMostLine = 512;
// Stands in the failure key once all nodes have ended well, so that no failure can be recorded.
constexpr std::string_view kNoFailure = "none";
constexpr int kMostRestarts = 1 << 20;

json parse_board(std::string_view text) {
  return codec::parse_json(text, {.bytes = kMostBoardBytes});
}

std::string dump(const json& value) {
  return codec::print_json(value);
}

// A malformed report is left out: the others still matter.
std::optional<NodeReport> read_report(int rank, std::string_view text) {
  const json value = parse_board(text);
  if (!value.is_object() || !value.contains("host") || !value["host"].is_string() ||
      !value.contains("report") || !value["report"].is_string())
    return std::nullopt;
  return NodeReport{value["host"].get<std::string>(), rank, value["report"].get<std::string>()};
}

}  // namespace

std::string encode_failure(const FailureRecord& record) {
  return dump({{"node", record.node},
               {"line", record.line},
               {"final", record.final},
               {"restarts", record.restarts},
               {"gone", record.gone}});
}

Result<FailureRecord> decode_failure(std::string_view text) {
  const json value = parse_board(text);
  const auto number = [&value](const char* key, int most) {
    return value.contains(key) && value[key].is_number_integer() && value[key] >= 0 &&
           value[key] <= most;
  };
  if (!value.is_object() || !number("node", INT32_MAX) || !number("restarts", kMostRestarts) ||
      !value.contains("line") || !value["line"].is_string() || !value.contains("final") ||
      !value["final"].is_boolean())
    return fail(Errc::corrupt, "a note of a failure makes no sense");
  FailureRecord record{value["node"].get<int>(),
                       printable(value["line"].get<std::string>(), kMostLine),
                       value["final"].get<bool>(), value["restarts"].get<int>()};
  if (const auto gone = value.find("gone"); gone != value.end() && gone->is_boolean())
    record.gone = gone->get<bool>();
  return record;
}

std::string told_line(const FailureRecord& record, int rank) {
  // On the node that was given up the plain line would read like another node's loss.
  return record.gone && record.node == rank ? "the other nodes gave up this node: " + record.line
                                            : record.line;
}

RoundBoard::RoundBoard(io::Loop& loop, KeyValue& keys, std::string prefix, int rank,
                       std::vector<bool> ours)
    : keys_(keys),
      prefix_(std::move(prefix)),
      rank_(rank),
      ours_(std::move(ours)),
      report_timer_(loop) {}

std::string RoundBoard::key(std::string_view name) const {
  return fmt::format("{}lockstep/{}", prefix_, name);
}

void RoundBoard::on_failure(std::function<void(const FailureRecord&)> fn) {
  on_failure_ = std::move(fn);
  alarm_ = keys_.watch(key("failure"), [this](const std::string& text) { hear(text); });
}

// Returns false if the text is no news. Otherwise the callback may have destroyed the board.
bool RoundBoard::hear(const std::string& text) {
  // The key serves both outcomes, so that the store's compare-and-set decides between them once.
  concluded_ = text == kNoFailure;
  const auto record = decode_failure(text);
  if (!record) return false;
  first_ = *record;
  // A lost node sends no report.
  if (record->gone) miss(record->node);
  // This node's own failure is no news, unless another node has reported this node as gone.
  if (record->node == rank_ && (told_ || !record->gone)) return false;
  if (const auto tell = on_failure_) tell(*record);
  return true;
}

void RoundBoard::look(std::function<void()> none) {
  keys_.probe(
      key("failure"),
      calls_([this, none = std::move(none)](const Result<std::optional<std::string>>& text) {
        if (text && (!*text || !hear(**text))) none();
      }));
}

void RoundBoard::tell(const FailureRecord& record, KeyValue::Done<std::string> done) {
  told_ = record;
  if (record.gone) miss(record.node);
  // The reports are ordered by the first failure, so they wait for this answer.
  telling_ = true;
  keys_.put_if_absent(
      key("failure"), encode_failure(record),
      [note = calls_([this](const Result<std::string>& first) { note_first(first); }),
       done = std::move(done)](Result<std::string> first) {
        note(first);
        // The callback may destroy the board.
        if (done) done(std::move(first));
      });
}

// The alarm gets the same record on its own connection, maybe later than the reports.
void RoundBoard::note_first(const Result<std::string>& text) {
  telling_ = false;
  if (text)
    if (auto record = decode_failure(*text)) first_ = std::move(*record);
  if (all_came_) collect();
}

void RoundBoard::conclude(std::function<void(const std::optional<FailureRecord>&)> done) {
  // If a failure is there already, all nodes end by that failure.
  keys_.put_if_absent(key("failure"), kNoFailure,
                      calls_([done = std::move(done)](const Result<std::string>& first) {
                        const auto record =
                            first ? decode_failure(*first) : fail(Errc::corrupt, "");
                        done(record ? std::optional(*record) : std::nullopt);
                      }));
}

void RoundBoard::miss(int rank) {
  if (rank >= 0 && rank < std::ssize(ours_)) ours_[static_cast<std::size_t>(rank)] = false;
}

void RoundBoard::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                  std::function<void(std::vector<NodeReport>)> done) {
  reports_done_ = std::move(done);
  // The exit barrier's wait would block the reports.
  keys_.forget_waits();
  reports_.push_back(own);
  keys_.set(key(fmt::format("report/{}", rank_)), dump({{"host", own.host}, {"report", own.text}}),
            nullptr);
  KeyValue::Keys wanted;
  for (int rank = 0; rank < std::ssize(ours_); ++rank) {
    if (!ours_[static_cast<std::size_t>(rank)] || rank == rank_) continue;
    asked_.push_back(rank);
    wanted.push_back(key(fmt::format("report/{}", rank)));
  }
  // A torchrun agent or a node that is about to die may never report.
  report_timer_.start(timeout, [this] { collect(); });
  if (wanted.empty()) return report_timer_.start({}, [this] { finish(); });
  keys_.wait(wanted, timeout, calls_([this](const Result<void>& all) {
               if (all) all_came();
             }));
}

void RoundBoard::all_came() {
  all_came_ = true;
  if (!telling_) collect();
}

// Reads the reports present by now.
void RoundBoard::collect() {
  all_came_ = false;
  if (!reports_done_) return;
  // Called again by the timer while probes are pending: take what has arrived.
  if (answered_ > 0) return finish();
  // A lost store never answers.
  report_timer_.start(std::chrono::seconds(1), [this] { finish(); });
  for (const int rank : std::exchange(asked_, {})) {
    ++answered_;
    keys_.probe(key(fmt::format("report/{}", rank)),
                calls_([this, rank](const Result<std::optional<std::string>>& text) {
                  if (!reports_done_) return;
                  if (text && *text)
                    if (auto report = read_report(rank, **text))
                      reports_.push_back(std::move(*report));
                  if (--answered_ == 0) finish();
                }));
  }
}

void RoundBoard::finish() {
  report_timer_.cancel();
  const auto done = std::exchange(reports_done_, nullptr);
  if (!done) return;
  // The first failure's report comes first: the cause, not the consequences.
  const int first = first_ ? first_->node : told_ ? told_->node : -1;
  std::sort(reports_.begin(), reports_.end(), [first](const auto& a, const auto& b) {
    return std::pair(a.group_rank != first, a.group_rank) <
           std::pair(b.group_rank != first, b.group_rank);
  });
  done(std::exchange(reports_, {}));
}

}  // namespace lockstep::rendezvous
