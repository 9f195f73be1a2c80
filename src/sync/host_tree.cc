#include "sync/host_tree.h"

#include "base/text.h"
#include "base/word_list.h"
#include "io/fd.h"
#include "io/file_lock.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "sync/confined.h"
#include "sync/host_place.h"
#include "sync/piece_files.h"
#include "sync/rsync_command.h"

#include <fmt/core.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::sync {
namespace {

constexpr std::size_t kMostNamed = 3;
constexpr std::size_t kMostText = 700;  // bytes of these names

Status make_place(const std::string& path) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    // mkdir() may fail for a folder above, which exists or is read-only. Only the last one counts.
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && at == std::string::npos)
      return fail_sys("make " + printable(path), errno);
    if (at == std::string::npos) return {};
  }
}

struct Place {
  std::string path;
  bool there = true;  // false: a dry run, so the folder was not made
};

Result<Place> make_place_for(const Offer& offer, const std::string& home) {
  LOCKSTEP_TRY_ASSIGN(const std::string wanted, wanted_place(offer.destination, home));
  struct stat info {};
  if (stat(wanted.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    return fail(Errc::already_exists,
                fmt::format("{} exists and is not a folder", printable(wanted)),
                "move it away, or name another place as SRC:DST");
  if (!offer.dry_run) LOCKSTEP_TRY(make_place(wanted));
  const auto real = real_path(wanted);
  if (!real) {
    // A dry run does not make the folder.
    if (offer.dry_run && errno == ENOENT) return Place{wanted, false};
    return fail_sys(printable(wanted), errno);
  }
  // A bad destination would let a later sync remove files all over the home.
  if (lies_in(real_path(home).value_or(home), *real))
    return fail(Errc::invalid_input,
                fmt::format("{} would be all of the home or the machine", printable(*real)),
                "name a folder in it");
  if (access(real->c_str(), W_OK | X_OK) != 0)
    return fail_sys("write to " + printable(*real), errno);
  return Place{*real};
}

std::string some_of(const std::vector<std::string>& paths) {
  return printable(join_some(paths, kMostNamed), kMostText);
}

// Finds entries in a manifest. Each path must sort after the one before, which makes a scan of the
// tree linear.
class InOrder {
 public:
  explicit InOrder(const Manifest& manifest) : at_(manifest.begin()), end_(manifest.end()) {}
  bool has(const Entry& there) {
    while (at_ != end_ && at_->path < there.path)
      ++at_;
    return at_ != end_ && at_->path == there.path && same(there, *at_);
  }

 private:
  Manifest::const_iterator at_;
  Manifest::const_iterator end_;
};

// Compares an offer with the host's tree. For each file the record says whether we sent it
// (`sent`), began to send it (`coming`), or found it equal on both sides (`met`).
class Comparison {
 public:
  Comparison(const Offer& offer, Record& record, Confined tree)
      : offer_(offer),
        record_(record),
        tree_(std::move(tree)),
        was_sent_(record.sent),
        was_coming_(record.coming) {}

  Status compare();
  Status check_way(const std::string& place) const;
  Status remove();
  // Returns true if the record already equals the offer and the tree.
  bool is_settled() const;
  // Returns the record for the time while the needed files are being sent.
  Record next(const std::string& place) const;

  Answer answer;

 private:
  bool is_ours(const std::string& path) const {
    return find(record_.sent, path) != nullptr || find(record_.coming, path) != nullptr;
  }
  bool is_as_sent(const Entry& there) const;
  // Returns true for a file of the host's user that was once equal on both sides and has not
  // changed since. Equality alone does not make it a file that we sent.
  bool is_as_met(const Entry& there) const;
  bool was_changed_there_alone(const Entry& meant) const;
  Status look_at(std::size_t index);
  Status look_at_obstacle(std::size_t index, const struct stat& info);
  Status look_above(std::string_view path);
  Result<bool> holds_only_ours(const std::string& folder);
  Status look_for_removal(const Manifest& earlier);
  void look_for_strangers();
  void need(std::size_t index);

  const Offer& offer_;
  const Record& record_;
  Confined tree_;
  InOrder was_sent_;
  InOrder was_coming_;
  std::vector<bool> needed_;
  std::vector<bool> sent_;               // per entry: as offered on the host, and sent by us
  std::map<std::size_t, Entry> before_;  // unedited old versions of needed files that we sent
  std::map<std::size_t, Entry> met_;     // unedited old versions of needed files that were only met
  std::vector<std::string> obstacles_;   // files and links that we did not send
  std::vector<std::string> full_;  // folders, in place of files, with content that we did not send
  std::set<std::string> blocked_;  // files and links in place of folders
  std::set<std::string> gone_;     // to be removed
};

bool Comparison::is_as_sent(const Entry& there) const {
  const Entry* sent = find(record_.sent, there.path);
  const Entry* coming = find(record_.coming, there.path);
  return (sent != nullptr && same(there, *sent)) || (coming != nullptr && same(there, *coming));
}

bool Comparison::is_as_met(const Entry& there) const {
  const Entry* met = find(record_.met, there.path);
  return met != nullptr && same(there, *met);
}

bool Comparison::was_changed_there_alone(const Entry& meant) const {
  const Entry* met = find(record_.met, meant.path);
  return met != nullptr && *met == meant;
}

bool Comparison::is_settled() const {
  if (!answer.needed.empty() || !record_.coming.empty() || record_.owner != offer_.owner)
    return false;
  // All lists are sorted alike, so one pass decides.
  auto sent = record_.sent.begin();
  auto met = record_.met.begin();
  for (const Entry& meant : offer_.manifest)
    if (sent != record_.sent.end() && *sent == meant)
      ++sent;
    else if (met != record_.met.end() && *met == meant)
      ++met;
    else
      return false;
  return sent == record_.sent.end() && met == record_.met.end();
}

void Comparison::need(std::size_t index) {
  needed_[index] = true;
  auto& spans = answer.needed;
  if (!spans.empty() && spans.back().last + 1 == index)
    spans.back().last = index;
  else
    spans.push_back({index, index});
}

Status Comparison::compare() {
  needed_.resize(offer_.manifest.size());
  sent_.resize(offer_.manifest.size());
  for (std::size_t i = 0; i < offer_.manifest.size(); ++i)
    LOCKSTEP_TRY(look_at(i));
  // Equal lists leave nothing to remove.
  if (record_.sent != offer_.manifest) LOCKSTEP_TRY(look_for_removal(record_.sent));
  LOCKSTEP_TRY(look_for_removal(record_.coming));
  look_for_strangers();
  answer.removals.assign(gone_.begin(), gone_.end());
  answer.removals.insert(answer.removals.end(), blocked_.begin(), blocked_.end());
  answer.removed = answer.removals.size();
  return {};
}

Status Comparison::look_at(std::size_t index) {
  const Entry& meant = offer_.manifest[index];
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(meant.path));
  // The file is missing: needed, unless something above is in the way.
  if (!info) {
    need(index);
    return look_above(meant.path);
  }
  if (S_ISREG(info->st_mode) || S_ISLNK(info->st_mode)) {
    LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(meant.path, *info));
    sent_[index] = was_sent_.has(*there) || was_coming_.has(*there);
    if (same(*there, meant)) return {};
  }
  return look_at_obstacle(index, *info);
}

// Decides about an entry whose path holds something else.
Status Comparison::look_at_obstacle(std::size_t index, const struct stat& info) {
  const Entry& meant = offer_.manifest[index];
  if (S_ISDIR(info.st_mode)) {
    need(index);
    LOCKSTEP_TRY_ASSIGN(const bool ours, holds_only_ours(meant.path));
    if (!ours) full_.push_back(meant.path);
    return {};
  }
  LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(meant.path, info));
  // Only the host's side has changed since both were equal, so keep the host's version.
  if (!offer_.force && !is_ours(meant.path) && !(there && is_as_met(*there)) &&
      was_changed_there_alone(meant)) {
    answer.theirs.push_back(meant.path);
    return {};
  }
  need(index);
  if (there && is_as_sent(*there))
    before_.emplace(index, *there);
  else if (there && is_as_met(*there))
    met_.emplace(index, *there);
  else if (is_ours(meant.path))
    ++answer.edited;
  else
    obstacles_.push_back(meant.path);
  return {};
}

// Finds a file or link in place of a needed folder. Our own files there are removed by
// look_for_removal().
Status Comparison::look_above(std::string_view path) {
  // ENOENT: no folder there yet, so nothing stands in the way.
  const auto parent = tree_.parent(path);
  if (parent || parent.error().sys == ENOENT) return {};
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string above(path.substr(0, slash));
    LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(above));
    if (!info) return {};
    if (S_ISDIR(info->st_mode)) continue;
    LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(above, *info));
    const bool goes = there && is_as_sent(*there);
    // Many files may lie below one obstacle. Name each obstacle once.
    if (!goes && blocked_.insert(above).second) obstacles_.push_back(above);
    return {};
  }
  return Failure(parent.error());
}

Result<bool> Comparison::holds_only_ours(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(const int fd, tree_.folder(folder));
  const int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (readable < 0) return fail_sys(printable(folder), errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(readable), closedir);
  if (!listing) return fail_sys(printable(folder), errno);
  std::vector<std::string> names;
  while (const dirent* found = readdir(listing.get()))
    if (std::string_view(found->d_name) != "." && std::string_view(found->d_name) != "..")
      names.push_back(folder + "/" + found->d_name);
  for (const std::string& path : names) {
    LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(path));
    if (!info) continue;
    bool ours = false;
    if (S_ISDIR(info->st_mode)) {
      LOCKSTEP_TRY_ASSIGN(ours, holds_only_ours(path));
    } else {
      LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(path, *info));
      ours = there && is_as_sent(*there);
    }
    if (!ours) return false;
  }
  // An empty folder is not ours: remove() also takes folders that become empty.
  return !names.empty();
}

Status Comparison::look_for_removal(const Manifest& earlier) {
  auto meant = offer_.manifest.begin();
  for (const Entry& entry : earlier) {
    while (meant != offer_.manifest.end() && meant->path < entry.path)
      ++meant;
    const bool stays = meant != offer_.manifest.end() && meant->path == entry.path;
    // A path of both lists was decided in the first pass.
    if (stays || gone_.contains(entry.path)) continue;
    LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(entry.path));
    // We send no folders, so a folder here is not ours to remove.
    if (!info || S_ISDIR(info->st_mode)) continue;
    LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(entry.path, *info));
    if (there && is_as_sent(*there)) gone_.insert(entry.path);
    // The file was edited on the host: keep it and tell the user.
    else if (answer.kept.empty() || answer.kept.back() != entry.path)
      answer.kept.push_back(entry.path);
  }
  return {};
}

// Reports met files that are gone on the client. They stay on the host.
void Comparison::look_for_strangers() {
  for (const Entry& entry : record_.met)
    if (find(offer_.manifest, entry.path) == nullptr && !gone_.contains(entry.path) &&
        tree_.look(entry.path).value_or(std::nullopt))
      answer.kept.push_back(entry.path);
}

Status Comparison::check_way(const std::string& place) const {
  if (!full_.empty())
    return fail(
        Errc::already_exists,
        fmt::format(
            "{} has folders, with files that Lockstep did not send, where files must go: {}",
            printable(place), some_of(full_)),
        "move them away");
  if (offer_.force || obstacles_.empty()) return {};
  return fail(Errc::already_exists,
              fmt::format("{} has different files that Lockstep did not send: {}", printable(place),
                          some_of(obstacles_)),
              "--force overwrites them");
}

Status Comparison::remove() {
  for (const std::string& path : gone_)
    LOCKSTEP_TRY(tree_.remove(path));
  for (const std::string& path : blocked_)
    LOCKSTEP_TRY(tree_.remove(path));
  // Removes drafts of an interrupted delivery whose files are no longer offered.
  for (const Entry& entry : record_.coming)
    if (find(offer_.manifest, entry.path) == nullptr &&
        tree_.look(draft_of(entry.path)).value_or(std::nullopt))
      LOCKSTEP_TRY(tree_.remove(draft_of(entry.path)));
  return {};
}

Record Comparison::next(const std::string& place) const {
  Record record{.place = place, .owner = offer_.owner};
  for (std::size_t i = 0; i < offer_.manifest.size(); ++i) {
    const Entry& meant = offer_.manifest[i];
    if (needed_[i]) record.coming.push_back(meant);
    if (const auto before = before_.find(i); before != before_.end())
      record.sent.push_back(before->second);
    else if (const auto met = met_.find(i); met != met_.end())
      record.met.push_back(met->second);
    else if (!needed_[i])
      (sent_[i] ? record.sent : record.met).push_back(meant);
  }
  return record;
}

}  // namespace

Result<Answer> answer_offer(const Offer& offer, const HostFolders& folders) {
  LOCKSTEP_TRY_ASSIGN(const Place place, make_place_for(offer, folders.home));
  const std::string path = record_path(folders, place.path);
  // Two clients may sync to the same place at once.
  io::FileLock lock;
  if (!offer.dry_run) {
    // The record lies outside the tree, so the user's files stay free of ours.
    LOCKSTEP_TRY(io::make_folders(folders.records));
    LOCKSTEP_TRY_ASSIGN(lock, io::FileLock::take(path + ".lock", io::FileLock::IfHeld::wait));
  }
  Record record;
  std::vector<std::string> remarks;
  if (auto read = read_record(folders, place.path); read)
    record = std::move(*read);
  else if (read.error().code == Errc::corrupt)
    remarks.push_back(path +
                      " is damaged and starts empty: files that were sent before are not removed");
  if (!offer.force) LOCKSTEP_TRY(check_owner(record, offer.owner, place.path));
  if (!place.there) {  // a dry run for a new folder
    // The folder does not exist yet, so all files are needed.
    Answer all{.place = place.path, .drafts = "", .rsync = has_rsync()};
    if (!offer.manifest.empty()) all.needed = {{0, offer.manifest.size() - 1}};
    return all;
  }
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(place.path));
  Comparison comparison(offer, record, std::move(tree));
  LOCKSTEP_TRY(comparison.compare());
  LOCKSTEP_TRY(comparison.check_way(place.path));
  comparison.answer.place = place.path;
  comparison.answer.rsync = has_rsync();
  comparison.answer.remarks = std::move(remarks);
  if (offer.dry_run) return std::move(comparison.answer);
  // The client shows the user what will be removed, then sends the same offer again with `told`.
  if (comparison.answer.removed != 0 && !offer.told) {
    comparison.answer.waits = true;
    return std::move(comparison.answer);
  }
  LOCKSTEP_TRY(comparison.remove());
  // Keep the record before any file arrives. Without it the files would look like files of the
  // host's user, and a later sync would not replace or remove them.
  if (!comparison.is_settled())
    LOCKSTEP_TRY(io::keep_record(path, encode_record(comparison.next(place.path))));
  if (!comparison.answer.needed.empty()) comparison.answer.drafts = drafts_for(place.path, path);
  return std::move(comparison.answer);
}

}  // namespace lockstep::sync
