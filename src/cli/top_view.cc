#include "cli/top_view.h"

#include "base/last_line.h"
#include "base/text.h"
#include "cli/own_answer.h"
#include "cli/top_terminal.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>

#include <cstdio>
#include <memory>
#include <utility>

namespace lockstep::cli {
namespace {

class TopView final : private TopTerminal::Listener {
 public:
  explicit TopView(TopViewRequest request)
      : request_(std::move(request)), screen_(request_.sort, request_.rank), timer_(loop_) {}

  Result<ExitCode> run();

 private:
  void on_key(const top::Key& key) override;
  void on_return() override;
  void on_terminal_gone() override { stop(stopped_by(SIGHUP)); }
  void on_signal(int number);
  void ask();
  void on_rows(const OwnAnswer::Said& said);
  void ask_threads();
  void ask_later();
  void draw() { terminal_->show(screen_.draw(TopTerminal::size())); }
  void stop(ExitCode code);

  TopViewRequest request_;
  io::Loop loop_;
  top::Screen screen_;
  std::unique_ptr<TopTerminal> terminal_;
  std::unique_ptr<proc::SignalWatch> signals_;
  std::unique_ptr<OwnAnswer> asked_;
  io::Timer timer_;
  bool again_ = false;  // ask once more as soon as the answer is there
  io::TimePoint asked_at_ = {};
  ExitCode code_ = ExitCode::ok;
  std::string last_words_;
};

Result<ExitCode> TopView::run() {
  LOCKSTEP_TRY_ASSIGN(signals_,
                      proc::SignalWatch::open(loop_, [this](int number) { on_signal(number); }));
  LOCKSTEP_TRY_ASSIGN(terminal_, TopTerminal::open(loop_, *this));
  draw();
  ask();
  loop_.run();
  asked_.reset();
  terminal_.reset();
  if (!last_words_.empty()) std::puts(last_words_.c_str());
  return code_;
}

void TopView::stop(ExitCode code) {
  code_ = code;
  loop_.stop();
}

void TopView::on_signal(int number) {
  if (number == SIGWINCH) {
    terminal_->forget();
    return draw();
  }
  if (proc::is_stop_signal(number)) stop(stopped_by(number));
}

void TopView::on_return() {
  draw();
}

void TopView::on_key(const top::Key& key) {
  switch (screen_.press(key)) {
    case top::Screen::Wish::none:
      return;
    case top::Screen::Wish::quit:
      return stop(ExitCode::ok);
    case top::Screen::Wish::ask:
      draw();
      return ask();
    case top::Screen::Wish::draw:
      return draw();
  }
}

// One question at a time: a slow host is asked less often.
void TopView::ask() {
  if (asked_) {
    again_ = true;
    return;
  }
  again_ = false;
  timer_.cancel();
  asked_at_ = io::Clock::now();
  // "--": a job's name may begin with '-'.
  auto asked = OwnAnswer::ask(loop_, {"top", "--once", "--json", "--", request_.word},
                              [this](const OwnAnswer::Said& said) { on_rows(said); });
  if (asked) {
    asked_ = std::move(*asked);
    return;
  }
  screen_.note(printable(asked.error().message));
  draw();
  ask_later();
}

void TopView::on_rows(const OwnAnswer::Said& said) {
  const auto done = std::move(asked_);
  const auto rows = top::read_job_rows(said.out);
  std::string note;
  if (said.code != 0 || !said.whole || !rows) {
    note = printable(last_line(said.err));
    if (note.empty()) note = "no answer";
  } else if (rows->nodes.empty()) {
    note = fmt::format("{}: no agent of the job answers", rows->state);
  } else {
    screen_.take(*rows);
  }
  last_words_ = request_.end_of(rows ? *rows : top::JobRows{});
  if (!last_words_.empty()) return stop(ExitCode::ok);
  if (!note.empty()) screen_.note(std::move(note));
  draw();
  if (screen_.shown_rank()) return ask_threads();
  ask_later();
}

void TopView::ask_threads() {
  const int rank = *screen_.shown_rank();
  auto asked = OwnAnswer::ask(loop_, {"why", fmt::format("--rank={}", rank), "--", request_.word},
                              [this, rank](const OwnAnswer::Said& said) {
                                const auto done = std::move(asked_);
                                screen_.take_threads(
                                    rank, said.code == 0 && said.whole ? said.out : said.err);
                                draw();
                                ask_later();
                              });
  if (asked) {
    asked_ = std::move(*asked);
    return;
  }
  ask_later();
}

void TopView::ask_later() {
  if (again_) return ask();
  const auto passed = io::Clock::now() - asked_at_;
  const auto pause = std::max(request_.interval - passed, io::Duration::zero());
  timer_.start(pause, [this] { ask(); });
}

}  // namespace

Result<ExitCode> view_top(TopViewRequest request) {
  return TopView(std::move(request)).run();
}

}  // namespace lockstep::cli
