#include "project/rsync_run.h"

#include "base/text.h"
#include "hosts/place_json.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/stream_ends.h"
#include "proc/find_in_path.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "proc/spawn.h"
#include "project/rsync_shell.h"
#include "ssh/control_place.h"
#include "ssh/master.h"
#include "sync/rsync_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

namespace lockstep::project {
namespace {

// The limit for words of a host. The first lines have the cause.
constexpr std::size_t kMostSaid = 64UL << 10;

// Returns an unnamed file with these bytes, open at the beginning. Unlike a pipe, a file needs no
// feeding while rsync reads the list.
Result<io::Fd> file_of(const std::string& bytes) {
  io::Fd fd(memfd_create("lockstep-files", MFD_CLOEXEC));
  if (!fd) return fail_sys("keep the list of files", errno);
  LOCKSTEP_TRY(io::write_all(fd.get(), bytes, "the list of files"));
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return fail_sys("keep the list of files", errno);
  return fd;
}

// Returns the command of this program as rsync's --rsh. rsync splits the text at spaces, except
// within quotes.
Result<std::string> own_shell() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size < 0) return fail_sys("find this program", errno);
  const std::string own(path.data(), static_cast<std::size_t>(size));
  if (own.find('\'') != std::string::npos)
    return fail(Errc::invalid_input, own + " has a quote in the path, which rsync does not accept");
  return "'" + own + "' rsync-shell";
}

class Transfers {
 public:
  Transfers(io::Loop& loop, const std::string& root, const std::vector<Transfer>& transfers,
            TellTransfer tell)
      : loop_(loop),
        root_(root),
        transfers_(transfers),
        tell_(std::move(tell)),
        ends_(transfers.size()) {}
  Result<std::vector<TransferEnd>> run();

 private:
  struct One {
    std::optional<proc::Child> child;
    io::Fd out;
    io::Fd err;
    std::unique_ptr<link::Source> from_out;
    std::unique_ptr<link::Source> from_err;
    std::unique_ptr<io::Watch> end_watch;
    std::string line;  // an unfinished line of output
    std::string said;
    int open = 0;  // parts that have not ended yet: the process, stdout and stderr
    // ssh itself moves the bytes faster than our link. But ssh starts the user's login shell, which
    // may print text into rsync's protocol.
    bool by_ssh = true;
  };
  Status start(std::size_t index);
  Result<std::string> shell_for(std::size_t index);
  void watch(std::size_t index);
  void on_out(std::size_t index, const std::string& bytes);
  void on_part_over(std::size_t index);
  void start_again(std::size_t index);
  void note_stop(TransferEnd& end, const std::string& name) const;

  io::Loop& loop_;
  const std::string& root_;
  const std::vector<Transfer>& transfers_;
  TellTransfer tell_;
  std::vector<TransferEnd> ends_;
  std::vector<One> all_;
  std::size_t running_ = 0;
  std::size_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<int> signal_;
  std::unique_ptr<proc::SignalWatch> signals_;
};

Result<std::vector<TransferEnd>> Transfers::run() {
  // Each rsync has a session of its own, so the terminal's Ctrl-C does not reach rsync. The
  // group includes the ssh of rsync.
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        if (!proc::is_stop_signal(number)) return;
                        signal_ = number;
                        for (const One& one : all_)
                          if (one.child) one.child->signal_group(SIGTERM);
                      }));
  all_.resize(transfers_.size());
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (Status started = start(i); !started)
      ends_[i].error = transfers_[i].place.name + ": " + started.error().message;
    else
      ++running_;
  }
  if (running_ != 0) loop_.run();
  return std::move(ends_);
}

Result<std::string> Transfers::shell_for(std::size_t index) {
  const hosts::HostPlace& place = transfers_[index].place;
  if (all_[index].by_ssh && !place.here) {
    LOCKSTEP_TRY_ASSIGN(const std::string socket, ssh::control_socket(place.target, place.pins));
    // The master has the user's settings and log-in. Without a master, ssh would log in anew,
    // perhaps with a question to the user.
    if (auto shell = sync::ssh_for_rsync(socket); shell && ssh::listens(socket))
      return std::move(*shell);
  }
  all_[index].by_ssh = false;
  return own_shell();
}

Status Transfers::start(std::size_t index) {
  const Transfer& transfer = transfers_[index];
  One& one = all_[index];
  LOCKSTEP_TRY_ASSIGN(const std::string shell, shell_for(index));
  const auto rsync = proc::find_in_path("rsync");
  if (!rsync) return Failure(rsync.error());
  LOCKSTEP_TRY_ASSIGN(const io::Fd input, file_of(sync::rsync_input(transfer.needed)));
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  proc::SpawnSpec spec;
  spec.executable = *rsync;
  spec.argv = sync::rsync_command(
      {.shell = shell, .place = transfer.answer.place, .drafts = transfer.answer.drafts});
  // RSYNC_RSH and similar variables of the user would change the transfer.
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!sync::changes_rsync(*entry)) spec.env.emplace_back(*entry);
  // rsync_trouble() reads rsync's messages, which must be in English.
  spec.env.push_back("LC_ALL=C");
  // For own_shell() only. A plain ssh ignores the variable.
  spec.env.push_back(std::string(kRsyncPlace) + "=" + hosts::places_text({transfer.place}));
  spec.folder = root_;
  spec.stdin_fd = input.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  LOCKSTEP_TRY_ASSIGN(one.child, proc::spawn(spec));
  one.out = std::move(out.read);
  one.err = std::move(err.read);
  watch(index);
  return {};
}

void Transfers::watch(std::size_t index) {
  One& one = all_[index];
  // All three parts must end before the exit code is judged: stderr with the cause may arrive after
  // the end of the process.
  one.open = 3;
  one.from_out = std::make_unique<link::Source>(
      loop_, one.out.get(), true,
      link::Source::Events{[this, index](const std::string& bytes) { on_out(index, bytes); },
                           [this, index] { on_part_over(index); }});
  one.from_err =
      std::make_unique<link::Source>(loop_, one.err.get(), true,
                                     link::Source::Events{[&one](const std::string& bytes) {
                                                            if (one.said.size() < kMostSaid)
                                                              one.said += bytes;
                                                            one.from_err->grant(bytes.size());
                                                          },
                                                          [this, index] { on_part_over(index); }});
  one.end_watch = std::make_unique<io::Watch>(loop_, one.child->pidfd());
  one.end_watch->start(io::kReadable, [this, index](int) {
    if (!all_[index].child->reap()) return;
    all_[index].end_watch.reset();
    on_part_over(index);
  });
}

// rsync prints one line per file or folder (--out-format=%b): the bytes sent.
void Transfers::on_out(std::size_t index, const std::string& bytes) {
  One& one = all_[index];
  one.from_out->grant(bytes.size());
  one.line += bytes;
  std::size_t end = 0;
  while ((end = one.line.find('\n')) != std::string::npos) {
    const auto sent = parse_int(one.line.substr(0, end));
    one.line.erase(0, end + 1);
    if (!sent || *sent < 0) continue;
    ends_[index].bytes += static_cast<std::uint64_t>(*sent);
    bytes_ += static_cast<std::uint64_t>(*sent);
    ++files_;
  }
  // Output of the host's rsync passes through here too, and may be endless. Bound the line.
  if (one.line.size() > kMostSaid) one.line.clear();
  if (tell_) tell_(files_, bytes_);
}

void Transfers::on_part_over(std::size_t index) {
  One& one = all_[index];
  if (--one.open != 0) return;
  const auto exit = one.child->exit();
  TransferEnd& end = ends_[index];
  if (signal_) {
    note_stop(end, transfers_[index].place.name);
  } else if (!exit->ok()) {
    // The login shell printed text, or the master is gone: our link avoids both.
    if (one.by_ssh && sync::may_try_another_shell(exit->shell_code(), one.said)) {
      // On the next turn, because this is a callback of objects that start_again() destroys.
      loop_.post([this, index] { start_again(index); });
      return;
    }
    const std::string why = sync::rsync_trouble(exit->shell_code(), one.said);
    const std::string& name = transfers_[index].place.name;
    end.error = why.starts_with(name + ":") ? why : name + ": " + why;
  }
  if (--running_ == 0) loop_.stop();
}

void Transfers::note_stop(TransferEnd& end, const std::string& name) const {
  end.signal = signal_;
  end.error = name + ": the transfer was stopped; the next sync goes on";
}

// Starts the transfer once more, through our own link. Finished files are not sent again: rsync
// skips files with equal size and time.
void Transfers::start_again(std::size_t index) {
  const std::string& name = transfers_[index].place.name;
  all_[index] = One{};
  all_[index].by_ssh = false;
  // A signal since the end of the first rsync has found no rsync to stop.
  if (signal_) {
    note_stop(ends_[index], name);
  } else {
    const Status started = start(index);
    if (started) return;
    ends_[index].error = name + ": " + started.error().message;
  }
  if (--running_ == 0) loop_.stop();
}

}  // namespace

Result<std::vector<TransferEnd>> run_transfers(io::Loop& loop, const std::string& root,
                                               const std::vector<Transfer>& transfers,
                                               const TellTransfer& tell) {
  Transfers run(loop, root, transfers, tell);
  return run.run();
}

}  // namespace lockstep::project
