#include "peer/serve_guest.h"

#include "base/text.h"
#include "peer/length.h"
#include "peer/peer_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

namespace lockstep::peer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{25};
constexpr std::chrono::seconds kSignOfLife{2};
// The most files to look for in one pass, so that a large group does not delay finished files.
constexpr std::size_t kMostLooks = 512;

class Guest {
 public:
  Guest(SecretChannel& channel, sync::Confined& tree, const sync::Record& record,
        const std::function<bool()>& complete)
      : channel_(channel), tree_(tree), record_(record), complete_(complete) {}
  Status serve(const sync::Manifest& group);

 private:
  bool was_offered(const sync::Entry& entry) const;
  Result<bool> look(std::size_t index);
  Result<bool> send_file(std::size_t index);
  Status say(const PieceHead& head, std::string_view bytes = {});
  Result<bool> is_as_offered(int fd, const sync::Entry& entry);

  SecretChannel& channel_;
  sync::Confined& tree_;
  const sync::Record& record_;
  const std::function<bool()>& complete_;
  const sync::Manifest* group_ = nullptr;
  std::string piece_;
  Clock::time_point said_ = Clock::now();
};

bool Guest::was_offered(const sync::Entry& entry) const {
  // A guest may ask for files of the client's offer, not for anything else in the tree.
  // Files that are arriving count as the offer describes them.
  const sync::Entry* coming = find(record_.coming, entry.path);
  if (coming != nullptr) return *coming == entry;
  for (const sync::Manifest* there : {&record_.sent, &record_.met})
    if (const sync::Entry* known = find(*there, entry.path); known != nullptr)
      return *known == entry;
  return false;
}

Status Guest::say(const PieceHead& head, std::string_view bytes) {
  said_ = Clock::now();
  LOCKSTEP_TRY(channel_.write(encode_head(head)));
  return channel_.write(bytes);
}

Result<bool> Guest::is_as_offered(int fd, const sync::Entry& entry) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail_sys("read " + printable(entry.path), errno);
  if (!S_ISREG(info.st_mode)) return false;
  // The open file counts, not the path: the path may change in between.
  LOCKSTEP_TRY_ASSIGN(const auto there, tree_.entry(entry.path, info));
  return there && same(*there, entry);
}

// Returns true if the guest need not wait for this file any more.
Result<bool> Guest::look(std::size_t index) {
  const sync::Entry& entry = (*group_)[index];
  // This host may still be receiving the file, under a draft's name. The file's own name, size and
  // time appear together, by rename().
  const auto info = tree_.look(entry.path);
  if (!info || !*info || !S_ISREG((*info)->st_mode)) return false;
  const auto there = tree_.entry(entry.path, **info);
  if (!there || !*there || !same(**there, entry)) return false;
  return send_file(index);
}

Result<bool> Guest::send_file(std::size_t index) {
  const sync::Entry& entry = (*group_)[index];
  const auto head = static_cast<std::uint32_t>(index);
  const auto folder = tree_.parent(entry.path);
  if (!folder) return false;
  // The file may have become a link or a FIFO since look().
  const io::Fd fd(openat(*folder, std::string(sync::last_part(entry.path)).c_str(),
                         O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return false;
  LOCKSTEP_TRY_ASSIGN(const bool ready, is_as_offered(fd.get(), entry));
  if (!ready) return false;
  for (std::uint64_t done = 0; done < entry.size;) {
    piece_.resize(std::min<std::uint64_t>(kMostPieceBytes, entry.size - done));
    const ssize_t got = pread(fd.get(), piece_.data(), piece_.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    bool whole = got > 0;
    const auto size = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    // Check again before the last piece, which makes the file complete on the other host.
    if (whole && done + size == entry.size) {
      LOCKSTEP_TRY_ASSIGN(whole, is_as_offered(fd.get(), entry));
    }
    if (!whole) {
      LOCKSTEP_TRY(say({head, 0}));
      return true;
    }
    LOCKSTEP_TRY(
        say({head, static_cast<std::uint32_t>(size)}, std::string_view(piece_).substr(0, size)));
    done += size;
  }
  return true;
}

Status Guest::serve(const sync::Manifest& group) {
  group_ = &group;
  std::deque<std::size_t> left;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!was_offered(group[i]))
      return fail(Errc::corrupt, printable(group[i].path) + " was not offered");
    left.push_back(i);
  }
  while (!left.empty()) {
    // Read the flag before looking, so that the last files to arrive are still found.
    const bool last = complete_();
    bool sent = false;
    for (std::size_t looks = last ? left.size() : std::min(left.size(), kMostLooks); looks > 0;
         --looks) {
      const std::size_t index = left.front();
      left.pop_front();
      LOCKSTEP_TRY_ASSIGN(const bool over, look(index));
      if (over) {
        sent = true;
      } else if (last) {
        LOCKSTEP_TRY(say({static_cast<std::uint32_t>(index), 0}));
      } else {
        left.push_back(index);
      }
    }
    // Only a whole pass without success needs a pause.
    if (left.empty() || sent) continue;
    if (Clock::now() - said_ > kSignOfLife) LOCKSTEP_TRY(say({}));
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

}  // namespace

Status serve_guest(SecretChannel& channel, sync::Confined& tree, const sync::Record& record,
                   const std::function<bool()>& complete) {
  Guest guest(channel, tree, record, complete);
  for (;;) {
    LOCKSTEP_TRY_ASSIGN(const std::string head, channel.read(kLengthBytes));
    const auto size = length_in(head, kMostWishBytes);
    if (!size) return fail(Errc::corrupt, "the other host asks for too much");
    if (*size == 0) return {};
    LOCKSTEP_TRY_ASSIGN(const std::string bytes, channel.read(*size));
    LOCKSTEP_TRY_ASSIGN(const sync::Manifest group, decode_wish(bytes));
    LOCKSTEP_TRY(guest.serve(group));
  }
}

}  // namespace lockstep::peer
