#include "peer/take.h"

#include "base/text.h"
#include "io/fd.h"
#include "peer/dial.h"
#include "peer/length.h"
#include "peer/meeting.h"
#include "peer/peer_wire.h"
#include "sync/confined.h"
#include "sync/host_place.h"
#include "sync/piece_files.h"

#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>

namespace lockstep::peer {
namespace {

using Clock = std::chrono::steady_clock;

// The serving end sends a sign of life every two seconds.
constexpr std::chrono::seconds kSilence{15};
constexpr std::chrono::milliseconds kTellEvery{200};

volatile sig_atomic_t open_socket = -1;

// Makes the waiting read fail, so that the cleanup runs as after any error. shutdown() is safe in a
// signal handler.
void on_asked_to_end(int /*number*/) {
  shutdown(open_socket, SHUT_RDWR);
}

class Taking {
 public:
  Taking(SecretChannel channel, sync::Confined tree, int out)
      : channel_(std::move(channel)), tree_(std::move(tree)), out_(out) {}
  Status run(const sync::Manifest& needed);

 private:
  Status take_group(const sync::Manifest& group);
  Status take_piece(const Intake::Next& next, std::size_t size);
  Status drop_draft(const sync::Entry& entry);
  Status say(const Answer& answer) const {
    return io::write_all(out_, print_answer(answer), "the answer");
  }

  SecretChannel channel_;
  sync::Confined tree_;
  int out_;
  Done done_;
  const sync::Entry* begun_ = nullptr;  // the file that has come in part
  Clock::time_point told_ = Clock::now();
};

Status Taking::run(const sync::Manifest& needed) {
  for (const sync::Entry& entry : needed) {
    if (has_content(entry)) continue;
    // Needs nothing from the other host.
    LOCKSTEP_TRY(sync::write_piece(tree_, {entry}));
    ++done_.files;
  }
  for (const sync::Manifest& group : groups_of(needed)) {
    LOCKSTEP_TRY(channel_.write(encode_wish(group)));
    LOCKSTEP_TRY(take_group(group));
  }
  return say(done_);
}

Status Taking::take_group(const sync::Manifest& group) {
  Intake intake(group);
  while (!intake.done()) {
    Status taken = [&]() -> Status {
      LOCKSTEP_TRY_ASSIGN(const std::string bytes, channel_.read(kPieceHead));
      const PieceHead head = decode_head(bytes);
      // The serving host is not trusted beyond the files of the group: Intake checks each head
      // before a byte is written.
      LOCKSTEP_TRY_ASSIGN(const Intake::Next next, intake.take(head));
      return take_piece(next, head.length);
    }();
    if (!taken) {
      if (begun_ != nullptr) (void)drop_draft(*begun_);
      return taken;
    }
  }
  return {};
}

Status Taking::take_piece(const Intake::Next& next, std::size_t size) {
  if (next.means == Intake::Means::wait) return {};
  if (next.means == Intake::Means::gone) {
    ++done_.missing;
    begun_ = nullptr;
    return next.offset == 0 ? Status() : drop_draft(*next.entry);
  }
  begun_ = next.entry;
  sync::Piece piece{*next.entry, next.offset};
  LOCKSTEP_TRY_ASSIGN(piece.bytes, channel_.read(size));
  LOCKSTEP_TRY(sync::write_piece(tree_, piece));
  done_.bytes += size;
  if (next.whole) {
    ++done_.files;
    begun_ = nullptr;
  }
  if (Clock::now() - told_ < kTellEvery) return {};
  told_ = Clock::now();
  return say(Progress{done_.bytes});
}

Status Taking::drop_draft(const sync::Entry& entry) {
  return tree_.remove(sync::draft_of(entry.path));
}

Status take_from(const Meeting& meeting, int out, const sync::HostFolders& folders) {
  LOCKSTEP_TRY_ASSIGN(const std::string place, sync::find_place(meeting.destination, folders.home));
  LOCKSTEP_TRY_ASSIGN(const sync::Record record,
                      sync::read_own_record(folders, place, meeting.owner));
  LOCKSTEP_TRY_ASSIGN(sync::Confined tree, sync::Confined::open(place));
  LOCKSTEP_TRY_ASSIGN(Dialed dialed, dial(meeting.addresses, meeting.port, meeting.key));
  LOCKSTEP_TRY(io::write_all(out, print_answer(Connected{dialed.address}), "the answer"));
  dialed.channel.set_patience(kSilence);
  // Set before the handler is installed, which uses it.
  open_socket = dialed.channel.socket();
  signal(SIGTERM, on_asked_to_end);
  Taking taking(std::move(dialed.channel), std::move(tree), out);
  return taking.run(record.coming);
}

}  // namespace

Status take(std::string_view request, int out, const sync::HostFolders& folders) {
  signal(SIGPIPE, SIG_IGN);
  const auto size = length_in(request.substr(0, kLengthBytes), kMostMeeting);
  if (!size) return fail(Errc::corrupt, "the client's request is unreadable");
  LOCKSTEP_TRY_ASSIGN(const Meeting meeting, decode_meeting(request.substr(kLengthBytes)));
  Status taken = take_from(meeting, out, folders);
  // The handler must not touch a closed socket.
  open_socket = -1;
  return taken;
}

}  // namespace lockstep::peer
