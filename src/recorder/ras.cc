#include "recorder/ras.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace lockstep::recorder {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRasText = 120;
constexpr std::size_t kMostSentences = 16;
constexpr std::size_t kMostSentenceBytes = 600;
constexpr std::size_t kMostCounts = 32;
constexpr std::size_t kMostRasRanges = 8;

std::string ras_text(const Json& object, const char* name) {
  return printable(codec::text_member(object, name), kMostRasText);
}

int int_of(const Json& object, const char* name) {
  const std::int64_t number = codec::integer_member(object, name);
  return number < 0 || number > std::numeric_limits<int>::max() ? 0 : static_cast<int>(number);
}

// Hashes are texts ("0x1f") or numbers.
std::string hash_of(const Json& object, const char* name) {
  std::string text = ras_text(object, name);
  if (!text.empty()) return text;
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) return "";
  return fmt::format("0x{:x}", at->get<std::uint64_t>());
}

RasRank rank_from(const Json& from, bool missing) {
  RasRank rank;
  rank.rank = int_of(from, "rank");
  rank.host = ras_text(from, "host");
  rank.pid = codec::integer_member(from, "pid");
  if (from.contains("cuda_dev")) rank.device = int_of(from, "cuda_dev");
  rank.missing = missing;
  if (const auto status = from.find("status"); status != from.end() && status->is_object()) {
    rank.unresponsive = codec::flag_member(*status, "unresponsive");
    rank.dead = codec::flag_member(*status, "considered_dead");
  }
  const auto counts = from.find("collective_counts");
  if (counts == from.end() || !counts->is_object()) return rank;
  for (const auto& [name, count] : counts->items())
    if (count.is_number_integer() && rank.counts.size() < kMostCounts)
      rank.counts[printable(name, kMostRasText)] = count.get<std::int64_t>();
  return rank;
}

void add_ranks(const Json& from, const char* list, bool missing, std::vector<RasRank>& into) {
  const auto at = from.find(list);
  if (at == from.end() || !at->is_array()) return;
  for (const Json& each : *at)
    if (each.is_object()) into.push_back(rank_from(each, missing));
}

std::string ranks_of_ras(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks, kMostRasRanges));
}

std::string name_of_communicator(const RasCommunicator& communicator) {
  return communicator.name.empty() ? "communicator " + communicator.hash : communicator.name;
}

std::string missing_text(const RasRank& rank) {
  return fmt::format("rank {} (pid {} on {}) {}", rank.rank, rank.pid, rank.host,
                     rank.dead ? "is considered dead by NCCL" : "does not answer NCCL's RAS");
}

// "AllReduce: rank 3 is at 1741, ranks 0-2 at 1742"; "" if all are equal.
std::string uneven_text(const RasCommunicator& communicator, const std::string& operation) {
  std::map<std::int64_t, std::vector<int>> by_count;
  for (const RasRank& rank : communicator.ranks) {
    if (rank.missing) continue;
    const auto count = rank.counts.find(operation);
    by_count[count == rank.counts.end() ? 0 : count->second].push_back(rank.rank);
  }
  if (by_count.size() < 2) return "";
  std::vector<int> behind = std::move(by_count.begin()->second);
  std::vector<int> ahead = std::move(std::prev(by_count.end())->second);
  std::sort(behind.begin(), behind.end());
  std::sort(ahead.begin(), ahead.end());
  return fmt::format("{}: {} {} at {}, {} at {}", operation, ranks_of_ras(behind),
                     behind.size() == 1 ? "is" : "are", by_count.begin()->first,
                     ranks_of_ras(ahead), std::prev(by_count.end())->first);
}

}  // namespace

RasTalk::RasTalk(int timeout_s) : out("CLIENT PROTOCOL 2\n"), timeout_s_(timeout_s) {}

Status RasTalk::feed(std::string_view bytes) {
  pending_ += bytes;
  while (stage_ != Stage::report) {
    const std::size_t end = pending_.find('\n');
    if (end == std::string::npos && pending_.size() <= kMostLine) return {};
    if (end == std::string::npos || end > kMostLine)
      return fail(Errc::corrupt, "NCCL's RAS: a line of more than 1024 bytes");
    const std::string line(strip(std::string_view(pending_).substr(0, end)));
    pending_.erase(0, end + 1);
    LOCKSTEP_TRY(take_line(line));
  }
  if (pending_.size() > kMostReport)
    return fail(Errc::exhausted, fmt::format("NCCL's RAS: more than {} bytes", kMostReport));
  return {};
}

Status RasTalk::take_line(std::string_view line) {
  switch (stage_) {
    case Stage::greeting:
      if (!line.starts_with("SERVER PROTOCOL"))
        return fail(Errc::corrupt, fmt::format("not a RAS port: '{}'", printable(line, 100)));
      out += fmt::format("TIMEOUT {}\n", timeout_s_);
      stage_ = Stage::timeout;
      return {};
    case Stage::timeout:
      if (line != "OK")
        return fail(Errc::corrupt,
                    fmt::format("NCCL's RAS refuses TIMEOUT: '{}'", printable(line, 100)));
      out += "SET FORMAT json\n";
      stage_ = Stage::format;
      return {};
    case Stage::format:
      // An older NCCL refuses the format and stays with text.
      json_ = line == "OK";
      out += "VERBOSE STATUS\n";
      stage_ = Stage::report;
      return {};
    case Stage::report:
      return {};
  }
  return {};
}

Result<std::string> RasTalk::finish() {
  if (stage_ != Stage::report || pending_.empty())
    return fail(Errc::unavailable, "NCCL's RAS ended the connection without a report");
  return std::move(pending_);
}

std::string with_commas(std::string_view json) {
  std::string fixed;
  fixed.reserve(json.size());
  bool after_value = false;  // the last token ends a value
  bool in_word = false;      // inside a number, true, false or null
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      in_word = false;
      fixed += c;
      continue;
    }
    const bool punctuation = std::string_view(",:}]").find(c) != std::string_view::npos;
    if (after_value && !in_word && !punctuation) fixed += ',';
    if (punctuation || c == '{' || c == '[') {
      in_word = false;
      after_value = c == '}' || c == ']';
    } else if (c == '"') {
      if (in_word) fixed += ',';
      const std::size_t start = i;
      for (++i; i < json.size() && json[i] != '"'; ++i)
        if (json[i] == '\\') ++i;
      fixed += json.substr(start, i - start);  // the closing quote follows
      if (i >= json.size()) break;
      in_word = false;
      after_value = true;
    } else {
      in_word = true;
      after_value = true;
    }
    fixed += json[i];
  }
  return fixed;
}

Result<RasReport> read_ras_report(std::string_view text) {
  const codec::JsonLimits limits{
      .bytes = RasTalk::kMostReport, .depth = 16, .members = 128U << 10, .values = 1U << 20};
  Json value = codec::parse_json(text, limits);
  if (value.is_discarded() && text.size() <= RasTalk::kMostReport)
    value = codec::parse_json(with_commas(text), limits);
  if (!value.is_object()) return fail(Errc::corrupt, "the report of NCCL's RAS is not JSON");
  RasReport report;
  report.nccl_version = ras_text(value, "nccl_version");
  const auto list = value.find("communicators");
  if (list == value.end() || !list->is_array()) return report;
  for (const Json& each : *list) {
    if (!each.is_object()) continue;
    RasCommunicator& communicator = report.communicators.emplace_back();
    communicator.hash = hash_of(each, "hash");
    const std::string second = hash_of(each, "secondary_hash");
    if (!second.empty()) communicator.hash += "/" + second;
    communicator.name = ras_text(each, "name");
    communicator.size = int_of(each, "size");
    add_ranks(each, "ranks", false, communicator.ranks);
    add_ranks(each, "missing_ranks", true, communicator.ranks);
  }
  return report;
}

std::vector<std::string> ras_sentences(const RasReport& report) {
  std::vector<std::string> sentences;
  const auto say = [&](const RasCommunicator& communicator, const std::string& what) {
    if (sentences.size() < kMostSentences && !what.empty())
      sentences.push_back(printable(fmt::format("{}: {}", name_of_communicator(communicator), what),
                                    kMostSentenceBytes));
  };
  for (const RasCommunicator& communicator : report.communicators) {
    std::set<std::string> operations;
    for (const RasRank& rank : communicator.ranks) {
      if (rank.missing) say(communicator, missing_text(rank));
      for (const auto& [operation, count] : rank.counts)
        if (operations.size() < kMostCounts) operations.insert(operation);
    }
    for (const std::string& operation : operations)
      say(communicator, uneven_text(communicator, operation));
  }
  return sentences;
}

}  // namespace lockstep::recorder
