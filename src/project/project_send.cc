// Sends the files of a ProjectSync: chooses the way to each host, and reports the end of each host.
#include "base/text.h"
#include "proc/signals.h"
#include "project/piece_run.h"
#include "project/project_sync.h"
#include "sync/confined.h"
#include "sync/heavy.h"
#include "sync/piece_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::project {
namespace {

// Above this, the user hears of the largest files before the transfer: a data set may be in the
// project by mistake.
constexpr std::uint64_t kMuch = 500'000'000;
constexpr std::size_t kMostNamed = 3;  // heaviest files and folders to name
// Limits for the way without rsync, in bytes: all files together, or per file on average.
constexpr std::uint64_t kLittle = 8'000'000;
constexpr std::uint64_t kSmall = 100'000;
// The memory for snapshots of files that change all the time.
constexpr std::uint64_t kMostHeld = 256U << 20;

std::string fan_words(const std::string& name, const std::string& seed, const std::string& why) {
  return fmt::format("{} gets its files from here and not from {}: {}", name, seed, why);
}

}  // namespace

void ProjectSync::choose_way(std::size_t index, sync::Answer answer) {
  sync::Manifest needed = sync::pick(manifest_, answer.needed);
  if (needed.empty()) return;
  // Few bytes arrive sooner than rsync starts. For small files, rsync's checksums cost more than
  // its deltas save. The last round sends snapshots, which rsync cannot read from disk.
  const std::uint64_t bytes = sync::bytes_of(needed);
  const bool little = last_round_ || bytes <= std::max(kLittle, needed.size() * kSmall);
  Way& way = little || !answer.rsync || !has_rsync_ ? pieces_ : rsync_;
  way.whose.push_back(index);
  way.transfers.push_back({places_[index], std::move(answer), std::move(needed)});
}

void ProjectSync::warn_of_much() const {
  const Transfer* most = nullptr;
  std::uint64_t bytes = 0;
  // Hosts may lack different files. The remark is about the host that needs most.
  for (const Way* way : {&rsync_, &pieces_})
    for (const Transfer& transfer : way->transfers)
      if (const std::uint64_t each = sync::bytes_of(transfer.needed); each > bytes) {
        most = &transfer;
        bytes = each;
      }
  if (bytes <= kMuch) return;
  std::vector<std::string> names;
  for (const sync::Heavy& each : sync::heaviest(most->needed, kMostNamed))
    names.push_back(fmt::format("{} ({})", printable(each.path), size_text(each.bytes)));
  remark(
      fmt::format("{} in {} files are to be sent, most of it in {}; .lockstepignore leaves "
                  "files out",
                  size_text(bytes), most->needed.size(), join(names, ", ")));
}

void ProjectSync::Way::drop(std::size_t host) {
  for (std::size_t i = whose.size(); i-- > 0;) {
    if (whose[i] != host) continue;
    whose.erase(whose.begin() + static_cast<std::ptrdiff_t>(i));
    transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ProjectSync::take_ends(const Way& way, const std::vector<TransferEnd>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    HostSync& host = report_.hosts[way.whose[i]];
    host.bytes += ends[i].bytes;
    before_ += ends[i].bytes;
    host.error = ends[i].error;
    if (!host.error.empty()) host.code = ends[i].signal ? 128 + *ends[i].signal : 1;
    if (host.error.empty()) awaited_.erase(way.whose[i]);
    // The host lacks files that changed during the read. send_restless() comes back to this host.
    if (ends[i].left_out != 0) unsettled_.insert(way.whose[i]);
    // Only these signals ask this process to end. Any other signal killed the program on that host
    // alone.
    const int signal = ends[i].signal.value_or(0);
    if (proc::is_stop_signal(signal)) stopped_ = signal;
  }
  direct_ = 0;
}

void ProjectSync::show(std::uint64_t bytes) {
  direct_ = bytes;
  const std::uint64_t done = before_ + direct_ + (fan_ ? fan_->bytes() : 0);
  // Files that are sent again, after trouble with a seed, count twice.
  if (options_.progress) options_.progress(std::min(done, all_), all_);
}

Status ProjectSync::send() {
  warn_of_much();
  for (const Way* way : {&rsync_, &pieces_}) {
    for (const Transfer& transfer : way->transfers)
      all_ += sync::bytes_of(transfer.needed);
    awaited_.insert(way->whose.begin(), way->whose.end());
  }
  // The fan comes first: takers that reach the seed are dropped from the direct ways.
  LOCKSTEP_TRY(open_fan());
  if (!stopped_) LOCKSTEP_TRY(send_directly());
  if (fan_ && !stopped_) LOCKSTEP_TRY(close_fan());
  if (!restless_.empty() && !stopped_) LOCKSTEP_TRY(send_restless());
  // Hosts that already have everything keep their good result.
  if (stopped_) stop({awaited_.begin(), awaited_.end()});
  return {};
}

// Sends files that change all the time, such as logs of a running program: reads each file once
// into memory and sends the snapshot.
Status ProjectSync::send_restless() {
  LOCKSTEP_TRY(hold_restless());
  std::vector<std::string> names;
  for (const auto& [path, bytes] : held_)
    names.push_back(printable(path));
  if (!names.empty()) remark("changed during the read, so hosts get a snapshot: " + some_of(names));
  const std::vector<std::size_t> hosts(unsettled_.begin(), unsettled_.end());
  restless_.clear();
  unsettled_.clear();
  // A file too large for a snapshot may change again. Give up after this round, since further
  // rounds could go on without end.
  last_round_ = true;
  // The entries have new sizes and times, so the hosts must hear of the new entries first.
  LOCKSTEP_TRY(ask(hosts, &ProjectSync::choose_way));
  LOCKSTEP_TRY(send_directly());
  names.clear();
  for (const std::string& path : restless_)
    names.push_back(printable(path));
  for (const std::size_t index : unsettled_) {
    HostSync& host = report_.hosts[index];
    if (!host.error.empty()) continue;
    host.code = 1;
    host.error = fmt::format("{}: not sent, because these files keep changing: {}", host.name,
                             some_of(names));
    host.hint = ".lockstepignore leaves files out";
  }
  return {};
}

// Updates the manifest to the snapshots. Drops deleted files from the manifest. A file that is too
// large for memory is sent from disk, and arrives if the file stops changing.
Status ProjectSync::hold_restless() {
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(project_.root));
  std::uint64_t held = 0;
  sync::Manifest now;
  for (sync::Entry& entry : manifest_) {
    if (!restless_.contains(entry.path)) {
      now.push_back(std::move(entry));
      continue;
    }
    LOCKSTEP_TRY_ASSIGN(const auto info, tree.look(entry.path));
    if (!info) continue;
    LOCKSTEP_TRY_ASSIGN(auto found, tree.entry(entry.path, *info));
    if (!found) continue;
    if (found->kind == sync::Kind::file && held + found->size <= kMostHeld) {
      LOCKSTEP_TRY_ASSIGN(std::string bytes, sync::read_piece(tree, found->path, 0, found->size));
      // The file may have grown or shrunk since the look. The entry must fit the snapshot.
      found->size = bytes.size();
      held += bytes.size();
      held_[found->path] = std::move(bytes);
    }
    now.push_back(std::move(*found));
  }
  manifest_ = std::move(now);
  return {};
}

Status ProjectSync::send_directly() {
  const TellTransfer tell = [this](std::size_t, std::uint64_t bytes) { show(bytes); };
  if (!pieces_.transfers.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto ends,
                        deliver(loop_, {project_.root, destination_, owner_, held_},
                                pieces_.transfers, tell, restless_, options_.run_command));
    take_ends(pieces_, ends);
  }
  if (!rsync_.transfers.empty() && !stopped_) {
    LOCKSTEP_TRY_ASSIGN(const auto ends,
                        run_transfers(loop_, project_.root, rsync_.transfers, tell));
    take_ends(rsync_, ends);
  }
  pieces_ = {};
  rsync_ = {};
  return {};
}

// For many bytes to several hosts: sends the files to a single host, which passes the files on to
// the others.
Status ProjectSync::open_fan() {
  std::vector<FanNeed> needs(places_.size());
  for (const Way* way : {&rsync_, &pieces_})
    for (std::size_t i = 0; i < way->whose.size(); ++i)
      needs[way->whose[i]] = {sync::bytes_of(way->transfers[i].needed),
                              places_[way->whose[i]].here};
  auto plan = plan_fan(needs);
  if (!plan) return {};
  fan_plan_ = std::move(*plan);
  FanSettings settings{places_[fan_plan_.seed], {}, destination_, owner_};
  for (const std::size_t taker : fan_plan_.takers)
    settings.takers.push_back(places_[taker]);
  fan_.emplace(loop_, std::move(settings), [this] { show(direct_); });
  if (Status opened = fan_->open(); !opened) {
    // canceled is the user's signal, which stop() reports per host.
    if (opened.error().code != Errc::canceled) return opened;
    stopped_ = opened.error().sys;
  }
  for (std::size_t i = 0; i < fan_plan_.takers.size() && !stopped_; ++i) {
    const FanCourse::Taker& taker = fan_->takers()[i];
    const std::size_t host = fan_plan_.takers[i];
    if (!taker.connected) {
      remark(fan_words(places_[host].name, places_[fan_plan_.seed].name, taker.trouble));
      continue;
    }
    for (Way* way : {&rsync_, &pieces_})
      way->drop(host);
  }
  return {};
}

// Waits for the takers. A taker that did not get all files from the seed gets the rest from this
// machine.
Status ProjectSync::close_fan() {
  // Tell the seed first: otherwise takers would wait for files that were left out.
  fan_->seed_is_done();
  if (Status finished = fan_->finish(); !finished) {
    if (finished.error().code != Errc::canceled) return finished;
    stopped_ = finished.error().sys;
  }
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < fan_plan_.takers.size(); ++i) {
    const FanCourse::Taker& taker = fan_->takers()[i];
    if (!taker.connected) continue;
    const std::size_t index = fan_plan_.takers[i];
    const std::string& seed = places_[fan_plan_.seed].name;
    report_.hosts[index].bytes += taker.bytes;
    if (taker.over && taker.trouble.empty()) {
      // Only if the seed gave all files: --json promises that.
      report_.hosts[index].from = seed;
      awaited_.erase(index);
    } else if (!stopped_) {
      remark(fan_words(places_[index].name, seed, taker.trouble));
      again.push_back(index);
    }
  }
  before_ += fan_->bytes();
  fan_.reset();
  if (again.empty() || stopped_) return {};
  // Ask again, because only the taker knows which files have arrived.
  LOCKSTEP_TRY(ask(again, &ProjectSync::choose_way));
  return send_directly();
}

// After a signal: reports the hosts that lack files.
void ProjectSync::stop(const std::vector<std::size_t>& hosts) {
  fan_.reset();
  for (const std::size_t index : hosts) {
    HostSync& host = report_.hosts[index];
    if (!host.error.empty()) continue;
    host.code = 128 + *stopped_;
    host.error = host.name + ": the transfer was stopped; the next sync goes on";
  }
}

}  // namespace lockstep::project
