#include "cluster/piece_run.h"

#include "base/text.h"
#include "sync/confined.h"
#include "sync/piece_files.h"
#include "sync/pieces.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::cluster {
namespace {

using sync::Range;

CommandRequest request_to_tree(const char* what) {
  CommandRequest request;
  request.own_binary = true;
  request.argv = {"host-tree", what};
  request.input = CommandRequest::Input::given;
  request.output = CommandRequest::Output::keep;
  return request;
}

// Why a host gave no answer; "" if it did.
std::string trouble_of(const HostEnding& ending) {
  if (!ending.error.empty()) return ending.error;
  if (ending.code == 0) return "";
  const std::string_view said = strip(ending.err);
  return said.empty() ? "its lockstep ended with " + std::to_string(ending.code) : printable(said);
}

// How far one host is served.
struct Course {
  std::vector<std::vector<Range>> groups;
  std::size_t next = 0;
  std::set<std::size_t> left_out = {};  // entries that are no more what they were
};

class Deliveries {
 public:
  Deliveries(const std::string& destination, const sync::Owner& owner,
             const std::vector<Transfer>& transfers, sync::Confined tree, const TellTransfer& tell)
      : destination_(destination),
        owner_(owner),
        transfers_(transfers),
        tree_(std::move(tree)),
        tell_(tell) {}
  Result<std::vector<TransferEnd>> run(io::Loop& loop);
  std::set<std::string> left_out;

 private:
  std::optional<std::string> next_delivery(std::size_t index);
  Result<bool> is_still(const sync::Entry& entry);
  Status read_pieces(std::size_t index, const std::vector<Range>& group,
                     std::vector<sync::Piece>& pieces);
  void take_ending(std::size_t index, const HostEnding& ending);

  const std::string& destination_;
  const sync::Owner& owner_;
  const std::vector<Transfer>& transfers_;
  sync::Confined tree_;
  const TellTransfer& tell_;
  std::vector<Course> courses_;
  std::vector<TransferEnd> ends_;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

// Asked after a file was read, so that no bytes of a later one pass for those of this one.
Result<bool> Deliveries::is_still(const sync::Entry& entry) {
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(entry.path));
  if (!info) return false;
  LOCKSTEP_TRY_ASSIGN(const auto now, tree_.entry(entry.path, *info));
  return now == entry;
}

Status Deliveries::read_pieces(std::size_t index, const std::vector<Range>& group,
                               std::vector<sync::Piece>& pieces) {
  Course& course = courses_[index];
  for (const Range& range : group) {
    const sync::Entry& entry = transfers_[index].needed[range.entry];
    if (course.left_out.contains(range.entry)) continue;
    sync::Piece piece{entry, range.offset};
    if (entry.kind == sync::Kind::file) {
      LOCKSTEP_TRY_ASSIGN(piece.bytes,
                          sync::read_piece(tree_, entry.path, range.offset, range.length));
      LOCKSTEP_TRY_ASSIGN(const bool still, is_still(entry));
      if (!still || piece.bytes.size() != range.length) {
        course.left_out.insert(range.entry);
        left_out.insert(printable(entry.path));
        continue;
      }
    }
    ends_[index].bytes += piece.bytes.size();
    bytes_ += piece.bytes.size();
    pieces.push_back(std::move(piece));
  }
  files_ += pieces.size();
  return {};
}

// A host whose files can't be read any more gets no more, and is told by its end.
std::optional<std::string> Deliveries::next_delivery(std::size_t index) {
  Course& course = courses_[index];
  if (course.next == course.groups.size() || !ends_[index].error.empty()) return std::nullopt;
  sync::Delivery delivery{.destination = destination_, .owner = owner_};
  if (const Status read = read_pieces(index, course.groups[course.next++], delivery.pieces); !read)
    ends_[index].error = transfers_[index].place.name + ": " + read.error().message;
  if (tell_) tell_(files_, bytes_);
  return sync::frame_delivery(delivery);
}

void Deliveries::take_ending(std::size_t index, const HostEnding& ending) {
  const std::string& name = transfers_[index].place.name;
  TransferEnd& end = ends_[index];
  if (!end.error.empty()) return;
  if (const std::string trouble = trouble_of(ending); !trouble.empty()) {
    end.error = trouble;
    if (!trouble.starts_with(name)) end.error.insert(0, name + ": ");
    if (ending.code > 128 && ending.code < 255) end.signal = ending.code - 128;
  } else if (const auto taken = sync::decode_listing(ending.out); !taken) {
    end.error = name + ": " + taken.error().message;
  }
}

Result<std::vector<TransferEnd>> Deliveries::run(io::Loop& loop) {
  CommandRequest request = request_to_tree("delivery");
  request.input = CommandRequest::Input::made;
  request.make_input = [this](std::size_t index) { return next_delivery(index); };
  ends_.resize(transfers_.size());
  for (const Transfer& transfer : transfers_) {
    request.hosts.push_back(transfer.place);
    courses_.push_back({sync::cut(transfer.needed, sync::kDeliveryBytes)});
  }
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command(loop, request));
  for (std::size_t i = 0; i < endings.size(); ++i)
    take_ending(i, endings[i]);
  return std::move(ends_);
}

// A link that leads out of the tree is of no use elsewhere, and a trap here.
bool stays_inside(const sync::Entry& link) {
  if (link.target.starts_with('/')) return false;
  std::ptrdiff_t depth = std::count(link.path.begin(), link.path.end(), '/');
  for (const std::string& part : split(link.target, '/')) {
    if (part.empty() || part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

class Fetch {
 public:
  Fetch(const HostPlace& host, const std::string& destination, sync::Confined tree)
      : host_(host), destination_(destination), tree_(std::move(tree)) {}
  Status list(const std::string& path, bool force);
  Status bring(const TellTransfer& tell);
  void count_all();
  Fetched fetched;

 private:
  // nullopt: it went wrong, and `fetched` says how.
  Result<std::optional<std::string>> ask(const char* what, const sync::Wish& wish);
  Status choose(sync::Entry entry, bool force);
  Status write(const std::vector<Range>& group, const std::vector<std::string>& contents);
  void fail_with(const Error& error);

  const HostPlace& host_;
  const std::string& destination_;
  sync::Confined tree_;
  sync::Manifest wanted_;
  std::set<std::size_t> changed_;
};

void Fetch::fail_with(const Error& error) {
  fetched.code = 1;
  fetched.error = host_.name + ": " + error.message;
  fetched.hint = error.hint;
}

Result<std::optional<std::string>> Fetch::ask(const char* what, const sync::Wish& wish) {
  CommandRequest request = request_to_tree(what);
  request.hosts = {host_};
  request.given = {sync::encode_wish(wish)};
  LOCKSTEP_TRY_ASSIGN(auto endings, run_command(request));
  HostEnding& ending = endings.front();
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
    return {};
  }
  for (sync::Entry& entry : *listing) {
    // The host is not trusted: only what was asked for.
    const bool asked = path.empty() || entry.path == path || entry.path.starts_with(path + "/");
    if (asked) LOCKSTEP_TRY(choose(std::move(entry), force));
  }
  return {};
}

Status Fetch::choose(sync::Entry entry, bool force) {
  if (entry.kind == sync::Kind::link && !stays_inside(entry)) {
    fetched.left_out.push_back(printable(entry.path));
    return {};
  }
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(entry.path));
  if (info) {
    LOCKSTEP_TRY_ASSIGN(const auto here, tree_.entry(entry.path, *info));
    if (here && same(*here, entry)) return {};
    const bool newer = here && here->kind == sync::Kind::file && here->mtime_ns > entry.mtime_ns;
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
    if (contents[i].size() != group[i].length) {
      changed_.insert(group[i].entry);
      fetched.left_out.push_back(printable(entry.path));
      continue;
    }
    const Status written = sync::write_piece(tree_, {entry, group[i].offset, contents[i]});
    if (!written && (written.error().sys == ENOTDIR || written.error().sys == ELOOP))
      return fail(Errc::already_exists,
                  printable(entry.path) +
                      " can't be written: something on the way is no folder, and "
                      "links are not followed");
    LOCKSTEP_TRY(written);
    fetched.bytes += contents[i].size();
    if (group[i].offset + group[i].length == entry.size || entry.kind == sync::Kind::link)
      ++fetched.files;
  }
  return {};
}

Status Fetch::bring(const TellTransfer& tell) {
  for (const std::vector<Range>& group : sync::cut(wanted_, sync::kMostPieceBytes)) {
    sync::Wish wish{.destination = destination_};
    for (const Range& range : group) {
      wish.pieces.push_back({wanted_[range.entry], range.offset});
      wish.lengths.push_back(range.length);
    }
    LOCKSTEP_TRY_ASSIGN(const auto bytes, ask("give", wish));
    if (!bytes) return {};
    const auto contents = sync::decode_contents(*bytes);
    if (!contents || contents->size() != group.size()) {
      fail_with(contents ? Error{Errc::corrupt, "its answer makes no sense", {}, 0}
                         : contents.error());
      return {};
    }
    LOCKSTEP_TRY(write(group, *contents));
    if (tell) tell(fetched.files, fetched.bytes);
  }
  return {};
}

void Fetch::count_all() {
  fetched.files = wanted_.size();
  fetched.bytes = sync::bytes_of(wanted_);
}

}  // namespace

Result<std::vector<TransferEnd>> deliver(io::Loop& loop, const std::string& root,
                                         const std::string& destination, const sync::Owner& owner,
                                         const std::vector<Transfer>& transfers,
                                         const TellTransfer& tell,
                                         std::vector<std::string>& left_out) {
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(root));
  Deliveries deliveries(destination, owner, transfers, std::move(tree), tell);
  auto ends = deliveries.run(loop);
  left_out.assign(deliveries.left_out.begin(), deliveries.left_out.end());
  return ends;
}

Result<Fetched> fetch(const HostPlace& host, const std::string& root,
                      const std::string& destination, const std::string& path, bool force,
                      bool dry_run, const TellTransfer& tell) {
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(root));
  Fetch fetching(host, destination, std::move(tree));
  LOCKSTEP_TRY(fetching.list(path, force));
  if (dry_run)
    fetching.count_all();
  else if (fetching.fetched.error.empty())
    LOCKSTEP_TRY(fetching.bring(tell));
  return std::move(fetching.fetched);
}

}  // namespace lockstep::cluster
