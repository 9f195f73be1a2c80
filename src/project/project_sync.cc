#include "project/project_sync.h"

#include "base/text.h"
#include "base/word_list.h"
#include "host/identity.h"
#include "io/own_folders.h"
#include "project/back_drafts.h"
#include "project/installation.h"
#include "project/piece_run.h"
#include "project/tree_lock.h"
#include "sync/host_place.h"
#include "sync/rsync_command.h"
#include "sync/scan.h"

#include <fmt/core.h>

#include <chrono>
#include <numeric>
#include <utility>

namespace lockstep::project {
namespace {
constexpr std::size_t kMostNamed = 3;
}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  return join_some(names, kMostNamed);
}

ProjectSync::ProjectSync(const std::vector<hosts::HostPlace>& hosts, const Project& project,
                         const SyncOptions& options)
    : places_(hosts),
      project_(project),
      options_(options),
      destination_(options.destination.empty() ? project.name : options.destination),
      owner_{host::hostname(), project.root, installation_id()},
      has_rsync_(sync::has_rsync()) {}

Result<SyncReport> ProjectSync::run() {
  const auto began = std::chrono::steady_clock::now();
  for (const hosts::HostPlace& place : places_)
    report_.hosts.push_back({.name = place.name});
  // Held until the files have arrived: two syncs of one tree would write the same drafts.
  TreeLocks locks;
  if (!options_.dry_run) {
    const Status locked =
        locks.take(places_, destination_, [this](const std::string& text) { remark(text); });
    if (!locked && locked.error().code != Errc::canceled) return Failure(locked.error());
    if (!locked) stopped_ = locked.error().sys;
  }
  std::vector<std::size_t> all(places_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (stopped_) {
    stop(all);
  } else {
    LOCKSTEP_TRY(ask(all, &ProjectSync::take_answer));
    if (!options_.dry_run) LOCKSTEP_TRY(send());
  }
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return std::move(report_);
}

// Returns the files that a client has sent to this tree. A tree without a record is sent whole. The
// client's git has chosen those files, and git tracks files that .gitignore names: the ignore files
// do not count again here, where the tree has no .git.
static Result<sync::Scan> scan_received(const std::string& root, sync::By by) {
  const auto record = sync::read_record(
      {.home = io::home_folder(), .records = io::state_folder() + "/synced"}, root);
  if (!record) return sync::scan(root, by);
  LOCKSTEP_TRY_ASSIGN(sync::Scan found, sync::scan(root, sync::By::nothing));
  std::erase_if(found.manifest, [&](const sync::Entry& entry) {
    return sync::find(record->sent, entry.path) == nullptr &&
           sync::find(record->coming, entry.path) == nullptr &&
           sync::find(record->met, entry.path) == nullptr;
  });
  found.special.clear();  // no client sends them
  return found;
}

Status ProjectSync::look() {
  const sync::By by = options_.everything ? sync::By::nothing : sync::By::git;
  LOCKSTEP_TRY_ASSIGN(sync::Scan found, options_.as_received ? scan_received(project_.root, by)
                                                             : sync::scan(project_.root, by));
  for (const std::string& text : found.remarks)
    remark(text);
  // File names may hold control characters, which must not reach the terminal.
  for (std::string& path : found.special)
    path = printable(path);
  if (!found.special.empty())
    remark("not sent, because only files and links are sent: " + some_of(found.special));
  if (found.manifest.empty())
    remark(printable(project_.root) + " has no files to send: there are none, or all are ignored");
  report_.files = found.manifest.size();
  report_.bytes = sync::bytes_of(found.manifest);
  // A killed `sync --back` leaves drafts. The scan has found them anyway, so remove the drafts now.
  if (!options_.dry_run) drop_back_drafts(project_.root, found.drafts);
  manifest_ = std::move(found.manifest);
  looked_ = true;
  offer_ = encoded_offer();
  return {};
}

// Moves the manifest in and out of the offer: a copy of millions of entries would take time and
// memory.
std::string ProjectSync::encoded_offer() {
  sync::Offer offer{.destination = destination_,
                    .owner = owner_,
                    .force = options_.force,
                    .dry_run = options_.dry_run,
                    .told = told_,
                    .manifest = std::move(manifest_)};
  std::string bytes = sync::encode_offer(offer);
  manifest_ = std::move(offer.manifest);
  return bytes;
}

// Scans the project while the hosts start, so that the scan costs no extra time. A host that gets
// no offer, because the scan has failed, changes nothing.
Result<std::vector<hosts::HostEnding>> ProjectSync::offer_to(std::vector<hosts::HostPlace> places) {
  Status looked;
  std::vector<bool> offered(places.size());
  hosts::CommandRequest request;
  request.hosts = std::move(places);
  request.own_binary = true;
  request.argv = {"host-tree", "offer"};
  request.output = hosts::CommandRequest::Output::keep;
  request.input = hosts::CommandRequest::Input::made;
  request.meanwhile = [&] {
    // Only before the first offer. Later offers use the same scan.
    if (offer_.empty()) looked = look();
  };
  request.make_input = [&](std::size_t host) -> std::optional<std::string> {
    if (!looked || offered[host]) return std::nullopt;
    offered[host] = true;
    return offer_;
  };
  auto endings = options_.run_command(loop_, request);
  // Report the failed scan first. The errors of the hosts only follow from the missing offer.
  LOCKSTEP_TRY(looked);
  return endings;
}

// Announces removals before anything is removed: a host that must remove files changes nothing
// until the second offer, so that the user can still press Ctrl-C.
Status ProjectSync::ask(const std::vector<std::size_t>& indexes, TakeAnswer take) {
  std::vector<std::size_t> asked = indexes;
  for (const bool told : {false, true}) {
    if (asked.empty()) return {};
    told_ = told;
    // The offer contains told_, and the manifest may have changed since the last offer.
    if (looked_) offer_ = encoded_offer();
    LOCKSTEP_TRY_ASSIGN(const auto endings, offer_to(places_at(asked)));
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < endings.size(); ++i) {
      auto answer = read_answer(asked[i], endings[i]);
      if (!answer) continue;
      if (!told) tell_removals(asked[i], *answer);
      if (answer->waits && !told)
        waiting.push_back(asked[i]);
      else
        (this->*take)(asked[i], std::move(*answer));
    }
    asked = std::move(waiting);
  }
  return {};
}

std::vector<hosts::HostPlace> ProjectSync::places_at(
    const std::vector<std::size_t>& indexes) const {
  std::vector<hosts::HostPlace> places;
  places.reserve(indexes.size());
  for (const std::size_t index : indexes)
    places.push_back(places_[index]);
  return places;
}

// nullopt: no valid answer, and the report has the error.
std::optional<sync::Answer> ProjectSync::read_answer(std::size_t index,
                                                     const hosts::HostEnding& ending) {
  const std::string& name = places_[index].name;
  HostSync& host = report_.hosts[index];
  if (!ending.error.empty()) {
    host.code = ending.code;
    host.error = ending.error;
    return std::nullopt;
  }
  auto answer = sync::parse_answer(ending.out, manifest_.size());
  if (answer) return std::move(*answer);
  host.code = ending.code > 128 ? ending.code : 1;
  host.error = fmt::format("{}: {}", name, answer.error().message);
  host.hint = answer.error().hint;
  const std::string_view said = strip(ending.err);
  // The program has failed before any answer. Its last words tell more than "not an answer".
  if (ending.out.empty() && !said.empty())
    host.error = fmt::format("{}: {}", name, printable(said));
  return std::nullopt;
}

void ProjectSync::tell_removals(std::size_t index, const sync::Answer& answer) const {
  if (answer.removed == 0) return;
  remark(fmt::format("{}: {} {} there, sent earlier and gone here: {}", places_[index].name,
                     options_.dry_run ? "would remove" : "removes",
                     answer.removed == 1 ? "1 file" : fmt::format("{} files", answer.removed),
                     some_of(answer.removals)));
}

void ProjectSync::tell_what_stays(const std::string& name, const sync::Answer& answer) const {
  if (!answer.kept.empty())
    remark(fmt::format("{}: gone here, but made or changed there, so these files stay: {}", name,
                       some_of(answer.kept)));
  if (!answer.theirs.empty())
    remark(
        fmt::format("{}: changed there and not sent from here, so these files stay: {}; --back "
                    "brings the files here, lockstep sync --force overwrites the files there",
                    name, some_of(answer.theirs)));
}

void ProjectSync::take_answer(std::size_t index, sync::Answer answer) {
  const std::string& name = places_[index].name;
  HostSync& host = report_.hosts[index];
  host.place = answer.place;
  host.removed = answer.removed;
  host.edited = answer.edited;
  for (const std::string& text : answer.remarks)
    remark(fmt::format("{}: {}", name, text));
  tell_what_stays(name, answer);
  if (answer.edited != 0)
    remark(fmt::format("{}: {} {} there since {} sent, {}", name, answer.edited,
                       answer.edited == 1 ? "file was changed" : "files were changed",
                       answer.edited == 1 ? "it was" : "they were",
                       options_.dry_run ? "and would be overwritten" : "and overwritten"));
  const sync::Manifest needed = sync::pick(manifest_, answer.needed);
  host.files = needed.size();
  if (options_.dry_run) host.bytes = sync::bytes_of(needed);
  choose_way(index, std::move(answer));
}

Result<SyncReport> sync_project(const std::vector<hosts::HostPlace>& hosts, const Project& project,
                                const SyncOptions& options) {
  ProjectSync sync(hosts, project, options);
  return sync.run();
}

Result<HostSync> sync_back(const hosts::HostPlace& place, const Project& project,
                           const std::string& path, const SyncOptions& options) {
  const std::string& destination = options.destination.empty() ? project.name : options.destination;
  const TellTransfer tell = [&](std::size_t, std::uint64_t bytes) {
    if (options.progress) options.progress(bytes, 0);
  };
  // Two processes at once would write the same drafts.
  TreeLocks locks;
  if (!options.dry_run)
    LOCKSTEP_TRY(locks.take_back(project.root, [&options](const std::string& text) {
      if (options.remark) options.remark(text);
    }));
  LOCKSTEP_TRY_ASSIGN(Fetched fetched, fetch(place, project.root, destination, path, options.force,
                                             options.dry_run, tell, options.run_command));
  if (options.remark && !fetched.kept.empty())
    options.remark("newer here, or no file here, so these stay: " + some_of(fetched.kept));
  if (options.remark && !fetched.left_out.empty())
    options.remark("left there (these lead out, could belong to git, or changed meanwhile): " +
                   some_of(fetched.left_out));
  return HostSync{.name = place.name,
                  .place = destination,
                  .files = fetched.files,
                  .bytes = fetched.bytes,
                  .code = fetched.code,
                  .absent = fetched.absent,
                  .error = fetched.error,
                  .hint = fetched.hint};
}

}  // namespace lockstep::project
