// Two helpers of `lockstep sync`. host-tree compares, takes and gives files of a tree on a host.
// rsync-shell replaces ssh when rsync runs on this machine. People do not call these.
#include "sync/host_tree.h"

#include "cli/subcommand.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "peer/meeting.h"
#include "peer/serve.h"
#include "peer/take.h"
#include "project/rsync_shell.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

// Bytes. An offer lists every file of a tree, so a large tree has a large offer.
constexpr std::size_t kMostOffer = 1UL << 30;

Result<std::string> all_of_stdin() {
  std::string text;
  std::array<char, 64UL << 10> bytes;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return fail_sys("read the offer", errno);
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostOffer) return fail(Errc::corrupt, "the offer of a tree is too large");
  }
}

sync::HostFolders folders() {
  return {io::home_folder(), io::state_folder() + "/synced"};
}

// Writes deliveries as they arrive, so memory holds only the bytes under way, whatever the tree's
// size. Errors: corrupt (the stream ends inside a delivery), or a file cannot be written.
Status take_deliveries() {
  sync::DeliveryTaker taker(folders());
  sync::DeliveryReader reader;
  std::vector<char> bytes(1UL << 20);
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read the files", errno);
    if (got == 0 && !reader.at_border())
      return fail(Errc::corrupt, "the input ended in the middle of a file");
    if (got == 0) return {};
    reader.put({bytes.data(), static_cast<std::size_t>(got)});
    for (;;) {
      LOCKSTEP_TRY_ASSIGN(const auto delivery, reader.next());
      if (!delivery) break;
      LOCKSTEP_TRY(taker.take(*delivery));
    }
  }
}

// Returns the answer to a request. The client reads errors of a request from the answer as well.
// Errors: invalid_input (no client calls like this).
Result<std::string> answer_to(const std::string& what, const std::string& bytes) {
  if (what == "offer") {
    const auto offer = sync::decode_offer(bytes);
    if (!offer) return sync::print_answer(Failure(offer.error()));
    return sync::print_answer(sync::answer_offer(*offer, folders()));
  }
  const auto wish = sync::decode_wish(bytes);
  if (what == "list")
    return sync::encode_listing(wish ? sync::list_tree(*wish, folders()) : Failure(wish.error()));
  if (what == "give")
    return sync::encode_contents(wish ? sync::give_contents(*wish, folders())
                                      : Failure(wish.error()));
  return fail(Errc::invalid_input, "this is an internal command, started by clients on hosts");
}

// Runs one end of a transfer between hosts. Both ends write answers while they work, and the error
// of a failed transfer is the last answer. Returns ok if that answer was written.
ExitCode between_hosts(const std::string& what) {
  const Status done = [&]() -> Status {
    if (what == "serve") return peer::serve(STDIN_FILENO, STDOUT_FILENO, folders());
    LOCKSTEP_TRY_ASSIGN(const std::string request, all_of_stdin());
    return peer::take(request, STDOUT_FILENO, folders());
  }();
  if (done) return ExitCode::ok;
  const std::string answer = peer::print_answer(peer::Trouble{done.error().message});
  return io::write_all(STDOUT_FILENO, answer, "the answer") ? ExitCode::ok : ExitCode::failed;
}

Result<ExitCode> host_tree_command(const Call& call) {
  // A terminal means that a person typed this command: reading stdin would then hang.
  const bool between = call.words.size() == 1 && isatty(STDIN_FILENO) != 1 &&
                       (call.words.front() == "serve" || call.words.front() == "take");
  if (between) return between_hosts(call.words.front());
  const auto answered = [&]() -> Result<std::string> {
    if (isatty(STDIN_FILENO) == 1 || call.words.size() != 1)
      return fail(Errc::invalid_input, "this is an internal command, started by clients on hosts");
    // An empty listing is the answer to deliveries without an error.
    if (call.words.front() == "delivery") {
      const Status taken = take_deliveries();
      if (!taken) return sync::encode_listing(Failure(taken.error()));
      return sync::encode_listing(sync::Manifest());
    }
    LOCKSTEP_TRY_ASSIGN(const std::string bytes, all_of_stdin());
    return answer_to(call.words.front(), bytes);
  }();
  if (!answered) return Failure(answered.error());
  const Status said = io::write_all(STDOUT_FILENO, *answered, "the answer");
  return said ? ExitCode::ok : ExitCode::failed;
}

Result<ExitCode> rsync_shell_command(const Call& call) {
  const auto code = project::rsync_shell(call.words);
  if (code) return passed_on(*code);
  std::fputs((code.error().message + "\n").c_str(), stderr);
  // ssh's own code for a failed connection, since rsync takes this process for ssh.
  return ExitCode::not_reached;
}

}  // namespace

extern constinit const Subcommand kHostTree{.name = "host-tree",
                                            .summary = "the host's end of lockstep sync",
                                            .run = host_tree_command,
                                            .fails_with = always(ExitCode::usage),
                                            .listed = false};
extern constinit const Subcommand kRsyncShell{.name = "rsync-shell",
                                              .summary = "what rsync takes for ssh",
                                              .run = rsync_shell_command,
                                              .signals = Signals::blocked,
                                              .listed = false};

}  // namespace lockstep::cli
