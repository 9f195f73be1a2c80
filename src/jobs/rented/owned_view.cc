#include "jobs/rented/owned_view.h"

#include "hosts/host_output.h"
#include "io/own_stream.h"
#include "jobs/rented/owner_talk.h"
#include "jobs/rented/owner_words.h"
#include "jobs/rented/stream_text.h"
#include "link/channel.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

using link::Stream;

constexpr std::uint32_t kView = 1;  // the channel of a link
constexpr std::size_t kMostHeld = 64UL << 10;

// Owns the link, the output, the signals and one timer.
class OwnedViewDriver {
 public:
  OwnedViewDriver(const OwnedViewRequest& request, const hosts::OpenLink& open_link,
                  io::OwnStream out, io::OwnStream err)
      : request_(request),
        open_link_(open_link),
        out_(loop_, std::move(out)),
        err_(loop_, std::move(err)),
        timer_(loop_),
        holds_out_(request.how.starts_with("start")),
        core_(request.settings) {}

  Result<OwnedViewEnd> run();

 private:
  void carry_out(const OwnedViewActions& actions);
  void carry_out(const OwnedViewAction& action);
  void open();
  void on_output(Stream stream, std::string_view bytes);
  void show(Stream stream, std::string_view piece);
  void finish();

  const OwnedViewRequest& request_;
  const hosts::OpenLink& open_link_;
  io::Loop loop_;
  hosts::HostOutput out_;
  hosts::HostOutput err_;
  std::unique_ptr<proc::SignalWatch> signals_;
  io::Timer timer_;
  const bool holds_out_;  // stdout gets only what a complete view has said there
  std::string held_;
  OwnedViewCore core_;
  OwnerWords words_;
  StreamDecoder decoder_;    // of this link
  std::uint64_t shown_ = 0;  // place in the whole log up to which it has come
  bool finished_ = false;
  std::unique_ptr<hosts::Link> link_;
  std::shared_ptr<link::Channel> view_;
};

Result<OwnedViewEnd> OwnedViewDriver::run() {
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        // The rest of the output may wait for a reader that never comes. The
                        // signal that ends the view does not drop it yet.
                        if (finished_ && proc::is_stop_signal(number)) return loop_.stop();
                        carry_out(core_.on_signal(number));
                      }));
  carry_out(core_.start(io::Clock::now()));
  loop_.run();
  // The outcome tells of these signals. Later requests must not take one as their own end.
  while (proc::SignalWatch::take_stop() != 0) {
  }
  return core_.outcome();
}

// Every event ends here: carry out the core's decisions, then set the timer for the next one.
void OwnedViewDriver::carry_out(const OwnedViewActions& actions) {
  for (const OwnedViewAction& action : actions)
    carry_out(action);
  const io::TimePoint next = core_.next_tick();
  if (next == io::TimePoint::max()) return timer_.cancel();
  timer_.start(std::max(next - io::Clock::now(), io::Duration::zero()),
               [this] { carry_out(core_.tick(io::Clock::now())); });
}

void OwnedViewDriver::carry_out(const OwnedViewAction& action) {
  switch (action.kind) {
    case OwnedViewAction::Kind::open:
      return open();
    case OwnedViewAction::Kind::cancel:
      return view_->signal(SIGINT);
    case OwnedViewAction::Kind::say:
      return request_.say(action.text);
    case OwnedViewAction::Kind::finish:
      return finish();
  }
}

void OwnedViewDriver::open() {
  link_.reset();  // first: both links may use the connection's one log-in
  decoder_.begin(shown_);
  held_.clear();
  view_ = std::make_shared<link::Channel>(
      kView,
      // Credit for output that is printed late finds no link.
      [this](const link::Frame& frame) {
        if (link_) link_->send(frame);
      },
      link::Channel::Events{
          .started = [this] { carry_out(core_.on_started(io::Clock::now())); },
          .output = [this](Stream stream, std::string_view bytes) { on_output(stream, bytes); },
          .ended =
              [this](const link::ChannelEnd& end) {
                carry_out(core_.on_end(end, io::Clock::now()));
              }},
      link::Channel::Credits::when_consumed);
  link_ =
      open_link_(loop_,
                 // The view may start the guard there, which must outlive the connection.
                 hosts::Link::Settings{.place = request_.place,
                                       .may_ask = shown_ == 0 && isatty(STDERR_FILENO) == 1,
                                       .commands = ssh::Commands::may_outlive_us},
                 hosts::Link::Events{
                     .frame = [view = view_](const link::Frame& frame) { view->take(frame); },
                     .failed = [view = view_](std::string why) { view->lose(std::move(why)); }});
  std::vector<std::string> argv = {kHostRental, "follow", request_.rental, request_.how,
                                   std::to_string(shown_)};
  if (core_.canceled()) argv.emplace_back(core_.must_cancel() ? kFollowCanceled : kFollowToEnd);
  view_->start({.argv = std::move(argv), .own = true});
}

// The host's stdout is the log with its two streams, and its stderr what the host itself says.
void OwnedViewDriver::on_output(Stream stream, std::string_view bytes) {
  if (finished_) return;
  if (stream == Stream::err) {
    err_.put_text(words_.take(bytes), 0, [](std::size_t) {});
    return view_->consumed(stream, bytes.size());
  }
  std::size_t unprinted = 0;
  decoder_.decode(bytes, [&](Stream to, std::string_view piece) {
    if (request_.how == kFollowQuiet) return;  // the host was not asked for the log
    if (to == Stream::out && holds_out_) {
      held_ += piece.substr(0, kMostHeld - std::min(kMostHeld, held_.size()));
      return;
    }
    unprinted += piece.size();
    shown_ = decoder_.at() + piece.size();
    show(to, piece);
  });
  for (int told = decoder_.take_canceled(); told > 0; --told)
    core_.on_told();
  view_->consumed(stream, bytes.size() - std::min(bytes.size(), unprinted));
  carry_out(core_.on_output());
}

// Credit comes once the piece is printed, and never for a later link.
void OwnedViewDriver::show(Stream stream, std::string_view piece) {
  (stream == Stream::out ? out_ : err_)
      .put("", piece, [view = std::weak_ptr(view_)](std::size_t printed) {
        if (const auto same = view.lock()) same->consumed(Stream::out, printed);
      });
}

// The link stays: this may run inside its callback.
void OwnedViewDriver::finish() {
  finished_ = true;
  err_.put_text(words_.end(), 0, [](std::size_t) {});
  if (core_.outcome().code == 0) out_.put_text(printable_lines(held_), 0, [](std::size_t) {});
  out_.when_idle([this] { err_.when_idle([this] { loop_.stop(); }); });
}

}  // namespace

Result<OwnedViewEnd> view_at_owner(const OwnedViewRequest& request,
                                   const hosts::OpenLink& open_link) {
  LOCKSTEP_TRY_ASSIGN(io::OwnStream out,
                      io::OwnStream::open(STDOUT_FILENO, io::OwnStream::Way::write));
  LOCKSTEP_TRY_ASSIGN(io::OwnStream err,
                      io::OwnStream::open(STDERR_FILENO, io::OwnStream::Way::write));
  return OwnedViewDriver(request, open_link, std::move(out), std::move(err)).run();
}

}  // namespace lockstep::jobs::rented
