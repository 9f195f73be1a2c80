#include "project/piece_run.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "project/back_drafts.h"
#include "project/sync_tree.h"
#include "sync/confined.h"
#include "sync/piece_files.h"
#include "sync/pieces.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::project {
namespace {

using sync::Range;

hosts::CommandRequest request_to_tree(const char* what) {
  hosts::CommandRequest request;
  request.own_binary = true;
  request.argv = {"host-tree", what};
  request.input = hosts::CommandRequest::Input::given;
  request.output = hosts::CommandRequest::Output::keep;
  return request;
}

// Returns the reason why a host gave no answer, or "".
std::string trouble_of(const hosts::HostEnding& ending) {
  if (!ending.error.empty()) return ending.error;
  if (ending.code == 0) return "";
  const std::string_view said = strip(ending.err);
  return said.empty() ? "its lockstep ended with " + std::to_string(ending.code) : printable(said);
}

// The progress of one host.
struct Course {
  sync::Cutter cutter;
  std::set<std::size_t> left_out = {};  // entries that have changed since the scan
};

class Deliveries {
 public:
  Deliveries(const Delivered& what, const std::vector<Transfer>& transfers, sync::Confined tree,
             const TellTransfer& tell, std::set<std::string>& left_out,
             const hosts::RunCommand& run_command)
      : what_(what),
        transfers_(transfers),
        tree_(std::move(tree)),
        tell_(tell),
        left_out_(left_out),
        run_command_(run_command) {}
  Result<std::vector<TransferEnd>> run(io::Loop& loop);

 private:
  std::optional<std::string> next_delivery(std::size_t index);
  Result<bool> is_still(const sync::Entry& entry);
  // nullopt: the file has changed since the scan.
  Result<std::optional<std::string>> bytes_of(const sync::Entry& entry, const Range& range);
  Status read_pieces(std::size_t index, const std::vector<Range>& group,
                     std::vector<sync::Piece>& pieces);
  void take_ending(std::size_t index, const hosts::HostEnding& ending);

  const Delivered& what_;
  const std::vector<Transfer>& transfers_;
  sync::Confined tree_;
  const TellTransfer& tell_;
  std::set<std::string>& left_out_;
  const hosts::RunCommand& run_command_;
  std::vector<Course> courses_;
  std::vector<TransferEnd> ends_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

// Returns whether the file is still the entry of the scan. Ask after the read: bytes of a newer
// file must not pass for bytes of this entry.
Result<bool> Deliveries::is_still(const sync::Entry& entry) {
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(entry.path));
  if (!info) return false;
  LOCKSTEP_TRY_ASSIGN(const auto now, tree_.entry(entry.path, *info));
  return now == entry;
}

Result<std::optional<std::string>> Deliveries::bytes_of(const sync::Entry& entry,
                                                        const Range& range) {
  // A snapshot cannot change any more, so the file on disk does not matter.
  if (const auto held = what_.held.find(entry.path); held != what_.held.end())
    return held->second.substr(range.offset, range.length);
  LOCKSTEP_TRY_ASSIGN(std::string bytes,
                      sync::read_piece(tree_, entry.path, range.offset, range.length));
  LOCKSTEP_TRY_ASSIGN(const bool still, is_still(entry));
  // A file that shrank for a moment gives fewer bytes, even if size and time are right again by
  // now.
  if (!still || bytes.size() != range.length) return std::nullopt;
  return bytes;
}

Status Deliveries::read_pieces(std::size_t index, const std::vector<Range>& group,
                               std::vector<sync::Piece>& pieces) {
  Course& course = courses_[index];
  for (const Range& range : group) {
    const sync::Entry& entry = transfers_[index].needed[range.entry];
    // Pieces of the old file may have been sent. Without the last piece, the host's draft never
    // replaces the file.
    if (course.left_out.contains(range.entry)) continue;
    sync::Piece piece{entry, range.offset};
    if (entry.kind == sync::Kind::file) {
      LOCKSTEP_TRY_ASSIGN(auto bytes, bytes_of(entry, range));
      if (!bytes) {
        course.left_out.insert(range.entry);
        left_out_.insert(entry.path);
        continue;
      }
      piece.bytes = std::move(*bytes);
    }
    ends_[index].bytes += piece.bytes.size();
    bytes_ += piece.bytes.size();
    pieces.push_back(std::move(piece));
  }
  files_ += pieces.size();
  return {};
}

// Called when the host has credit left, so only about one delivery per host is in memory. A read
// error on this machine ends the delivery to that host. take_ending() reports the error.
std::optional<std::string> Deliveries::next_delivery(std::size_t index) {
  Course& course = courses_[index];
  if (!ends_[index].error.empty()) return std::nullopt;
  const std::vector<Range> group = course.cutter.next();
  if (group.empty()) return std::nullopt;
  sync::Delivery delivery{.destination = what_.destination, .owner = what_.owner};
  if (const Status read = read_pieces(index, group, delivery.pieces); !read)
    ends_[index].error = transfers_[index].place.name + ": " + read.error().message;
  if (tell_) tell_(files_, bytes_);
  return sync::frame_delivery(delivery);
}

void Deliveries::take_ending(std::size_t index, const hosts::HostEnding& ending) {
  const std::string& name = transfers_[index].place.name;
  TransferEnd& end = ends_[index];
  end.left_out = courses_[index].left_out.size();
  if (!end.error.empty()) return;
  if (const std::string trouble = trouble_of(ending); !trouble.empty()) {
    end.error = trouble;
    // Errors of the link name the host, words of the program there do not.
    if (!trouble.starts_with(name)) end.error.insert(0, name + ": ");
    if (ending.code > 128 && ending.code != kExitNotReached) end.signal = ending.code - 128;
  } else if (const auto taken = sync::decode_listing(ending.out); !taken) {
    end.error = name + ": " + taken.error().message;
  }
}

Result<std::vector<TransferEnd>> Deliveries::run(io::Loop& loop) {
  hosts::CommandRequest request = request_to_tree("delivery");
  request.input = hosts::CommandRequest::Input::made;
  request.make_input = [this](std::size_t index) { return next_delivery(index); };
  ends_.resize(transfers_.size());
  for (const Transfer& transfer : transfers_) {
    request.hosts.push_back(transfer.place);
    courses_.push_back({sync::Cutter(transfer.needed, sync::kDeliveryBytes)});
  }
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command_(loop, request));
  for (std::size_t i = 0; i < endings.size(); ++i)
    take_ending(i, endings[i]);
  return std::move(ends_);
}

// Refuses files that are dangerous in themselves. git accepts any folder with HEAD, objects and
// refs as a repository, and runs commands that the config of the repository names, even for a shell
// prompt. A hostile host must not plant such a folder, so refuse HEAD, in any case: a tree on a
// disk of Windows or macOS does not tell "head" from "HEAD". (.git itself is refused by
// check_path().)
bool may_come(const sync::Entry& entry) {
  if (to_lower(sync::last_part(entry.path)) == "head") return false;
  return entry.kind != sync::Kind::link || sync::link_may_come(entry);
}

class Fetch {
 public:
  Fetch(const hosts::HostPlace& host, const std::string& destination, sync::Confined tree,
        const hosts::RunCommand& run_command)
      : host_(host), destination_(destination), tree_(std::move(tree)), run_command_(run_command) {}
  Status list(const std::string& path, bool force);
  Status bring(const TellTransfer& tell);
  // Removes unfinished files of this process and of earlier processes.
  void drop_drafts();
  // For a dry run: counts the wanted files as if they had come.
  void count_all();
  Fetched fetched;

 private:
  // nullopt: failed, and `fetched` has the error.
  Result<std::optional<std::string>> ask(const char* what, const sync::Wish& wish);
  Status choose(sync::Entry entry, bool force);
  Status check_room() const;
  Status write(const std::vector<Range>& group, const std::vector<std::string>& contents);
  void fail_with(const Error& error);

  const hosts::HostPlace& host_;
  const std::string& destination_;
  sync::Confined tree_;
  const hosts::RunCommand& run_command_;
  sync::Manifest wanted_;
  std::set<std::size_t> changed_;  // entries of wanted_ that changed during the transfer
  std::set<std::string> folders_;  // folders of all listed files, where drafts may lie
};

void Fetch::fail_with(const Error& error) {
  fetched.code = 1;
  fetched.error = host_.name + ": " + error.message;
  fetched.hint = error.hint;
}

Result<std::optional<std::string>> Fetch::ask(const char* what, const sync::Wish& wish) {
  hosts::CommandRequest request = request_to_tree(what);
  request.hosts = {host_};
  request.given = {sync::encode_wish(wish)};
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings, run_command_(loop, request));
  hosts::HostEnding& ending = endings.front();
  const std::string trouble = trouble_of(ending);
  if (trouble.empty()) return std::move(ending.out);
  fetched.code = ending.code;
  fetched.error = trouble.starts_with(host_.name) ? trouble : host_.name + ": " + trouble;
  return std::nullopt;
}

Status Fetch::list(const std::string& path, bool force) {
  LOCKSTEP_TRY_ASSIGN(const auto bytes, ask("list", {.destination = destination_, .path = path}));
  if (!bytes) return {};
  auto listing = sync::decode_listing(*bytes);
  if (!listing) {
    fail_with(listing.error());
    fetched.absent = listing.error().code == Errc::not_found;
    return {};
  }
  for (sync::Entry& entry : *listing) {
    // The host is not trusted: take only requested paths.
    const bool asked = path.empty() || entry.path == path || entry.path.starts_with(path + "/");
    if (!asked) continue;
    folders_.insert(folder_of(entry.path));
    LOCKSTEP_TRY(choose(std::move(entry), force));
  }
  return {};
}

Status Fetch::choose(sync::Entry entry, bool force) {
  if (!may_come(entry)) {
    fetched.left_out.push_back(printable(entry.path));
    return {};
  }
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(entry.path));
  if (info) {
    LOCKSTEP_TRY_ASSIGN(const auto here, tree_.entry(entry.path, *info));
    if (here && same(*here, entry)) return {};
    // The user may have edited the file here after the job had started. Keep the newer file unless
    // forced.
    const bool newer = here && here->kind == sync::Kind::file && here->mtime_ns > entry.mtime_ns;
    // No entry: a folder, socket or device here. Even --force does not replace these.
    if (!here || (newer && !force)) {
      fetched.kept.push_back(printable(entry.path));
      return {};
    }
  }
  wanted_.push_back(std::move(entry));
  return {};
}

Status Fetch::write(const std::vector<Range>& group, const std::vector<std::string>& contents) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const sync::Entry& entry = wanted_[group[i].entry];
    if (changed_.contains(group[i].entry)) continue;
    // A shorter text is the host's way of saying that the file has changed. All further pieces of
    // the file are useless then.
    if (contents[i].size() != group[i].length) {
      changed_.insert(group[i].entry);
      fetched.left_out.push_back(printable(entry.path));
      continue;
    }
    if (entry.kind == sync::Kind::link) {
      // may_come() has judged the link alone. Links that exist here may still combine with the new
      // link into a way out.
      LOCKSTEP_TRY_ASSIGN(const bool out, tree_.leads_out(entry.path, entry.target));
      if (out) {
        fetched.left_out.push_back(printable(entry.path));
        continue;
      }
    }
    const Status written = sync::write_piece(tree_, {entry, group[i].offset, contents[i]});
    // Confined never follows links. Tell the user the cause, because the system's words would be
    // misleading.
    if (!written && (written.error().sys == ENOTDIR || written.error().sys == ELOOP))
      return fail(Errc::already_exists,
                  printable(entry.path) +
                      " cannot be written: a parent must be a folder, and links are not "
                      "followed");
    LOCKSTEP_TRY(written);
    fetched.bytes += contents[i].size();
    if (group[i].offset + group[i].length == entry.size || entry.kind == sync::Kind::link)
      ++fetched.files;
  }
  return {};
}

// Check before anything is written: the sizes are claims of the host, and a false claim must not
// fill this disk.
Status Fetch::check_room() const {
  LOCKSTEP_TRY_ASSIGN(const std::uint64_t free, tree_.free_bytes());
  const std::uint64_t bytes = sync::bytes_of(wanted_);
  if (bytes <= free) return {};
  return fail(
      Errc::exhausted,
      fmt::format("{}: {} in {} {} to come, and {} are free here", host_.name, size_text(bytes),
                  wanted_.size(), wanted_.size() == 1 ? "file" : "files", size_text(free)));
}

Status Fetch::bring(const TellTransfer& tell) {
  LOCKSTEP_TRY(check_room());
  // Each group is a request of its own, because contents are held in memory.
  sync::Cutter cutter(wanted_, sync::kMostPieceBytes);
  for (auto group = cutter.next(); !group.empty(); group = cutter.next()) {
    sync::Wish wish{.destination = destination_};
    for (const Range& range : group) {
      wish.pieces.push_back({wanted_[range.entry], range.offset});
      wish.lengths.push_back(range.length);
    }
    LOCKSTEP_TRY_ASSIGN(const auto bytes, ask("give", wish));
    if (!bytes) return {};
    const auto contents = sync::decode_contents(*bytes);
    // A wrong number of contents would put bytes into the wrong files.
    if (!contents || contents->size() != group.size()) {
      fail_with(contents ? Error{Errc::corrupt, "invalid answer", {}, 0} : contents.error());
      return {};
    }
    LOCKSTEP_TRY(write(group, *contents));
    if (tell) tell(fetched.files, fetched.bytes);
  }
  return {};
}

void Fetch::drop_drafts() {
  drop_drafts_in(tree_, folders_);
}

void Fetch::count_all() {
  fetched.files = wanted_.size();
  fetched.bytes = sync::bytes_of(wanted_);
}

}  // namespace

Result<std::vector<TransferEnd>> deliver(io::Loop& loop, const Delivered& what,
                                         const std::vector<Transfer>& transfers,
                                         const TellTransfer& tell, std::set<std::string>& left_out,
                                         const hosts::RunCommand& run_command) {
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(what.root));
  Deliveries deliveries(what, transfers, std::move(tree), tell, left_out, run_command);
  return deliveries.run(loop);
}

Result<Fetched> fetch(const hosts::HostPlace& host, const std::string& root,
                      const std::string& destination, const std::string& path, bool force,
                      bool dry_run, const TellTransfer& tell,
                      const hosts::RunCommand& run_command) {
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(root));
  Fetch fetching(host, destination, std::move(tree), run_command);
  LOCKSTEP_TRY(fetching.list(path, force));
  if (dry_run) {
    fetching.count_all();
  } else if (fetching.fetched.error.empty()) {
    // Begin without old drafts: a killed process may have left drafts of the same names.
    fetching.drop_drafts();
    const Status brought = fetching.bring(tell);
    // Pieces are not continued later, so a failed transfer leaves no draft.
    if (!brought || !fetching.fetched.error.empty()) fetching.drop_drafts();
    LOCKSTEP_TRY(brought);
  }
  return std::move(fetching.fetched);
}

}  // namespace lockstep::project
