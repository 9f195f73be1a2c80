// The host's side of files that are sent in pieces, in both directions.
#include "base/text.h"
#include "sync/confined.h"
#include "sync/host_place.h"
#include "sync/host_tree.h"
#include "sync/piece_files.h"

#include <fmt/core.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

namespace lockstep::sync {
namespace {

// Deeper trees than this would exhaust the stack by recursion.
constexpr std::size_t kMostDepth = 512;

class Listing {
 public:
  explicit Listing(Confined tree) : tree_(std::move(tree)) {}
  Result<Manifest> run(const std::string& path);

 private:
  Status folder(const std::string& path, std::size_t depth);
  Status add(const std::string& path, const struct stat& info, std::size_t depth);

  Confined tree_;
  Manifest found_;
};

Result<Manifest> Listing::run(const std::string& path) {
  if (path.empty()) {
    LOCKSTEP_TRY(folder("", 0));
  } else {
    LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(path));
    if (!info) return fail(Errc::not_found, fmt::format("there is no {} there", printable(path)));
    LOCKSTEP_TRY(add(path, *info, 0));
  }
  sort(found_);
  return std::move(found_);
}

Status Listing::folder(const std::string& path, std::size_t depth) {
  if (depth > kMostDepth) return fail(Errc::invalid_input, printable(path) + " lies too deep");
  // The tree's descriptor is O_PATH, which cannot be read; "." opens the same folder again.
  LOCKSTEP_TRY_ASSIGN(const int fd, tree_.folder(path));
  const int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(readable < 0 ? nullptr : fdopendir(readable),
                                                    closedir);
  if (!listing) return fail_sys("read " + printable(path), errno);
  std::vector<std::string> names;
  while (const dirent* found = readdir(listing.get()))
    names.emplace_back(found->d_name);
  for (const std::string& name : names) {
    // Neither git's own files nor drafts of other transfers belong to the tree.
    if (name == "." || name == ".." || is_of_git(name) || name.starts_with(draft_of(""))) continue;
    const std::string inner = path.empty() ? name : fmt::format("{}/{}", path, name);
    LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(inner));
    if (!info) continue;
    // A job may remove a folder that the listing has just met. That one is left out.
    if (Status added = add(inner, *info, depth); !added && added.error().sys != ENOENT)
      return added;
  }
  return {};
}

Status Listing::add(const std::string& path, const struct stat& info, std::size_t depth) {
  if (S_ISDIR(info.st_mode)) return folder(path, depth + 1);
  if (found_.size() == kMostEntries) return fail(Errc::exhausted, "there are too many files");
  LOCKSTEP_TRY_ASSIGN(auto entry, tree_.entry(path, info));
  // Devices, sockets and FIFOs have no entry. They stay behind.
  if (entry) found_.push_back(std::move(*entry));
  return {};
}

}  // namespace

Status DeliveryTaker::open(const Delivery& delivery) {
  LOCKSTEP_TRY_ASSIGN(const std::string place, find_place(delivery.destination, folders_.home));
  // Another client may have taken over the place since the offer.
  LOCKSTEP_TRY_ASSIGN(record_, read_own_record(folders_, place, delivery.owner));
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(place));
  tree_ = std::move(tree);
  destination_ = delivery.destination;
  return {};
}

Status DeliveryTaker::take(const Delivery& delivery) {
  if (!tree_) LOCKSTEP_TRY(open(delivery));
  if (delivery.destination != destination_)
    return fail(Errc::corrupt, "a delivery names another place than the deliveries before");
  for (const Piece& piece : delivery.pieces) {
    // Accept only files of the answered offer, as the offer described them.
    const Entry* awaited = find(record_.coming, piece.entry.path);
    if (awaited == nullptr || *awaited != piece.entry)
      return fail(Errc::corrupt, printable(piece.entry.path) + " was not asked for");
    LOCKSTEP_TRY(write_piece(*tree_, piece));
  }
  return {};
}

Result<Manifest> list_tree(const Wish& wish, const HostFolders& folders) {
  LOCKSTEP_TRY_ASSIGN(const std::string place, find_place(wish.destination, folders.home));
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(place));
  Listing listing(std::move(tree));
  return listing.run(wish.path);
}

Result<std::vector<std::string>> give_contents(const Wish& wish, const HostFolders& folders) {
  LOCKSTEP_TRY_ASSIGN(const std::string place, find_place(wish.destination, folders.home));
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(place));
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < wish.pieces.size(); ++i) {
    const Piece& piece = wish.pieces[i];
    LOCKSTEP_TRY_ASSIGN(std::string bytes,
                        read_piece(tree, piece.entry.path, piece.offset, wish.lengths[i]));
    contents.push_back(std::move(bytes));
  }
  return contents;
}

}  // namespace lockstep::sync
