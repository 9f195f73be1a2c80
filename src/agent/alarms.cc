#include "agent/alarms.h"

#include "base/log.h"
#include "io/fd.h"
#include "looks/hang_words.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::agent {
namespace {

constexpr int kMostEvidenceFiles = 10;  // of an attempt

}  // namespace

void Alarms::attempt_started(Attempt attempt) {
  attempt_ends();
  attempt_ = std::move(attempt);
  files_ = 0;
  timed_out_ = false;
  count_ = 0;
  last_.clear();
}

void Alarms::attempt_ends() {
  alarm_.reset();
  owes_words_ = owes_dumps_ = false;
}

bool Alarms::feed(const Found& found, io::Duration hearing, io::TimePoint now) {
  // Recorders are asked every two seconds. A hang waits for the first answers of this node only.
  const bool waits = collectives_.asking() && !collectives_.knows();
  const auto steps = alarm_.feed(found.verdict, waits, hearing, now);
  owes_words_ = owes_words_ && (found.verdict.alarm || timed_out_);
  owes_dumps_ = owes_dumps_ && (found.verdict.alarm || timed_out_);
  if (steps.tell)
    tell(found);
  else
    tell_late(found.evidence);
  if (steps.tell_wait) log::warning("{}", looks::waiting_words(found.verdict));
  return steps.act;
}

void Alarms::hear(const std::string& leader, const looks::WorldNews& news,
                  const looks::Evidence& evidence) {
  // The leader may not know the recorders of this node.
  std::string collectives;
  for (const std::string& sentence : evidence.sentences)
    collectives += "\n  " + sentence;
  log::warning("the job stands still, see the log of {}{}", leader, collectives);
  // This node may have seen the timeout before the leader.
  if (news.timeout && std::exchange(timed_out_, true)) return;
  keep(news.alarm + collectives, evidence);
}

void Alarms::tell(const Found& found) {
  last_ = looks::hang_words(found.verdict, found.fold, found.evidence,
                            {.attempt = attempt_.number, .round = attempt_.round, .evidence = {}});
  last_is_timeout_ = false;
  ++count_;
  // Told first: the folder of the logs may be on the file server that everybody waits for.
  log::warning("{}", last_);
  keep(last_, found.evidence);
}

void Alarms::time_out(int rank, const looks::Fold& fold, const looks::Evidence& evidence) {
  if (std::exchange(timed_out_, true)) return;
  collectives_.ask_now(fold);
  last_ = looks::timeout_words(rank, fold, evidence,
                               {.attempt = attempt_.number, .round = attempt_.round});
  last_is_timeout_ = true;
  ++count_;
  log::warning("{}", last_);
  keep(last_, evidence);
}

// Keeps what this node knows of the hang, and says where.
void Alarms::keep(const std::string& words, const looks::Evidence& evidence) {
  dumps_told_ = false;
  const std::string path = keep_node(words);
  if (!path.empty()) {
    log::warning("  evidence: {}", path);
    // The workers may end before they answer, so the dumps of the last request are kept as well.
    keep_dumps();
  }
  owes_dumps_ = !path.empty() && collectives_.asking();
  owes_words_ = evidence.sentences.empty() && collectives_.asking();
}

void Alarms::keep_dumps() {
  const std::string dumps = collectives_.keep(files_);
  if (!dumps.empty() && !std::exchange(dumps_told_, true))
    log::warning("  flight recorders: {}*", dumps);
}

// The first dump of a rank may take longer than a hang may wait to be told.
void Alarms::tell_late(const looks::Evidence& evidence) {
  if (owes_words_ && (!evidence.sentences.empty() || !collectives_.asking())) {
    owes_words_ = false;
    for (const std::string& sentence : evidence.sentences)
      log::warning("{}: {}", timed_out_ ? "timeout" : "hang", sentence);
  }
  if (owes_dumps_ && !collectives_.asking()) {
    owes_dumps_ = false;
    keep_dumps();
  }
}

// Returns the path of the file. Empty: there is none.
std::string Alarms::keep_node(const std::string& words) {
  if (attempt_.folder.empty() || files_ == kMostEvidenceFiles) return {};
  std::string path = fmt::format("{}/hang-{}.txt", attempt_.folder, ++files_);
  if (const Status written = io::write_file(path, words + "\n" + node_()); !written) {
    log::warning("no evidence is kept: {}", written.error().message);
    return {};
  }
  return path;
}

}  // namespace lockstep::agent
