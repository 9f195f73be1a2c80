#include "peer/serve.h"

#include "base/text.h"
#include "host/own_addresses.h"
#include "io/fd.h"
#include "io/listen.h"
#include "peer/length.h"
#include "peer/serve_guest.h"
#include "sync/host_place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace lockstep::peer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 128;
constexpr std::size_t kMostGuests = 256;
// The limit for callers that have not shown the key. A further caller replaces the oldest.
constexpr std::size_t kMostStrangers = 32;
constexpr std::chrono::seconds kHandshakeTime{5};
constexpr std::chrono::seconds kIdleTime{30};
constexpr int kLookAfterGuestsMs = 200;

// Memory shared between this process and its children.
struct Shared {
  std::atomic<bool> complete;
  std::array<std::atomic<bool>, kMostGuests> known;  // the child's host has shown the key
};

struct Unmap {
  void operator()(Shared* shared) const { munmap(shared, sizeof(Shared)); }
};

Result<std::string> read_whole(int fd, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    // The client may send the request in parts.
    const ssize_t got = read(fd, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Errc::corrupt, "the client's request is cut");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

class Service {
 public:
  Service(int in, int out, Meeting meeting, sync::Record record, sync::Confined tree)
      : in_(in),
        out_(out),
        meeting_(std::move(meeting)),
        record_(std::move(record)),
        tree_(std::move(tree)) {}
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  Status run();

 private:
  struct Guest {
    pid_t pid;
    std::size_t slot;
    Clock::time_point since;
  };
  bool is_stranger(const Guest& guest) const { return !shared_->known[guest.slot]; }
  bool heed_client();  // false: the client is gone
  void let_in();
  [[noreturn]] void be_child(io::Fd socket, std::size_t slot);
  void look_after_guests();
  void make_room();

  const int in_;
  const int out_;
  const Meeting meeting_;
  const sync::Record record_;
  sync::Confined tree_;
  io::Listener listener_;
  std::unique_ptr<Shared, Unmap> shared_;
  std::vector<Guest> guests_;  // the oldest first
};

Service::~Service() {
  for (const Guest& guest : guests_)
    // A child needs no orderly end: the child only reads files and writes to the guest.
    kill(guest.pid, SIGKILL);
  for (const Guest& guest : guests_)
    waitpid(guest.pid, nullptr, 0);
}

Status Service::run() {
  // Shared with the children, which are separate processes.
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_sys("share memory with children", errno);
  shared_.reset(new (memory) Shared{});
  LOCKSTEP_TRY_ASSIGN(listener_, io::open_listener("", 0, kBacklog));
  auto addresses = host::own_addresses();
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  LOCKSTEP_TRY(io::write_all(
      out_,
      print_answer(Listening{std::move(addresses), static_cast<std::uint16_t>(listener_.port)}),
      "the answer"));
  for (;;) {
    std::array<pollfd, 2> waits = {pollfd{in_, POLLIN, 0}, pollfd{listener_.fd.get(), POLLIN, 0}};
    // Without guests there is nothing to look after.
    if (poll(waits.data(), waits.size(), guests_.empty() ? -1 : kLookAfterGuestsMs) < 0 &&
        errno != EINTR)
      return fail_sys("wait for the client", errno);
    if (waits[0].revents != 0 && !heed_client()) return {};
    look_after_guests();
    if (waits[1].revents != 0) let_in();
  }
}

bool Service::heed_client() {
  char word = 0;
  const ssize_t got = read(in_, &word, 1);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  // The client writes a byte when this host has all files. Files still missing then never come.
  shared_->complete = true;
  return true;
}

void Service::let_in() {
  io::Fd socket(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return;
  make_room();
  if (guests_.size() == kMostGuests) return;
  // A slot is a flag in shared memory, so it must be free.
  std::array<bool, kMostGuests> taken{};
  for (const Guest& guest : guests_)
    taken[guest.slot] = true;
  const auto slot =
      static_cast<std::size_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
  shared_->known[slot] = false;
  // One process per guest: a slow or hostile guest cannot delay other guests.
  const pid_t pid = fork();
  if (pid == 0) be_child(std::move(socket), slot);
  if (pid > 0) guests_.push_back({pid, slot, Clock::now()});
}

void Service::be_child(io::Fd socket, std::size_t slot) {
  // Children must not keep the client's pipes or the port open.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  listener_.fd.reset();
  close(in_);
  close(out_);
  auto channel = SecretChannel::open(std::move(socket), meeting_.key, SecretChannel::Side::serves,
                                     kHandshakeTime);
  if (!channel) _exit(1);
  // From now on no stranger pushes this guest out.
  shared_->known[slot] = true;
  channel->set_patience(kIdleTime);
  const Status served =
      serve_guest(*channel, tree_, record_, [this] { return shared_->complete.load(); });
  _exit(served ? 0 : 1);
}

// Reaps ended children, and kills those of hosts too slow to show the key.
void Service::look_after_guests() {
  const auto now = Clock::now();
  std::erase_if(guests_, [&](const Guest& guest) {
    // The child limits its handshake, too; this covers a child that hangs.
    if (is_stranger(guest) && now - guest.since > kHandshakeTime) kill(guest.pid, SIGKILL);
    return waitpid(guest.pid, nullptr, WNOHANG) == guest.pid;
  });
}

void Service::make_room() {
  const auto stranger = [this](const Guest& guest) { return is_stranger(guest); };
  if (std::count_if(guests_.begin(), guests_.end(), stranger) <
      static_cast<std::ptrdiff_t>(kMostStrangers))
    return;
  const auto oldest = std::find_if(guests_.begin(), guests_.end(), stranger);
  kill(oldest->pid, SIGKILL);
  waitpid(oldest->pid, nullptr, 0);
  guests_.erase(oldest);
}

}  // namespace

Status serve(int in, int out, const sync::HostFolders& folders) {
  signal(SIGPIPE, SIG_IGN);
  LOCKSTEP_TRY_ASSIGN(const std::string head, read_whole(in, kLengthBytes));
  const auto size = length_in(head, kMostMeeting);
  if (!size) return fail(Errc::corrupt, "the client's request is unreadable");
  LOCKSTEP_TRY_ASSIGN(const std::string bytes, read_whole(in, *size));
  LOCKSTEP_TRY_ASSIGN(Meeting meeting, decode_meeting(bytes));
  LOCKSTEP_TRY_ASSIGN(const std::string place, sync::find_place(meeting.destination, folders.home));
  LOCKSTEP_TRY_ASSIGN(sync::Record record, sync::read_own_record(folders, place, meeting.owner));
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(place));
  Service service(in, out, std::move(meeting), std::move(record), std::move(tree));
  return service.run();
}

}  // namespace lockstep::peer
