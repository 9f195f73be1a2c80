#include "cloud/lambda/lambda_pacer.h"

#include "io/file_lock.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace lockstep::cloud::lambda {
namespace {

// A later time was written before the clock was set back.
constexpr std::int64_t kFarthestTurn = 60'000;

// Returns no lock if the file cannot be locked. The limits then hold in this process only.
io::FileLock lock_turns(const std::string& path) {
  if (const std::size_t slash = path.rfind('/'); slash != std::string::npos)
    if (!io::make_folders(path.substr(0, slash))) return {};
  return io::FileLock::take(path, io::FileLock::IfHeld::wait).value_or(io::FileLock());
}

}  // namespace

template <class Change>
void LambdaPacer::change(std::int64_t now_ms, Change change) {
  const std::lock_guard lock(mutex_);
  const io::FileLock held = lock_turns(path_);
  Turns turns = own_;
  if (held) {
    std::array<char, 64> text{};
    turns = {};
    if (pread(held.fd(), text.data(), text.size() - 1, 0) > 0) {
      long long question = 0;
      long long launch = 0;
      if (std::sscanf(text.data(), "%lld %lld", &question, &launch) == 2)
        turns = {.question_ms = question, .launch_ms = launch};
    }
  }
  for (std::int64_t* turn : {&turns.question_ms, &turns.launch_ms})
    if (*turn > now_ms + kFarthestTurn) *turn = now_ms;
  change(turns);
  own_ = turns;
  if (!held) return;
  // The text has a fixed length, so a write always replaces the whole old text.
  const std::string text = fmt::format("{:020} {:020}\n", turns.question_ms, turns.launch_ms);
  if (pwrite(held.fd(), text.data(), text.size(), 0) < 0) return;
}

Status LambdaPacer::turn(Web& web, bool launch) {
  const std::int64_t began = web.now_ms();
  // Waiting reserves nothing, so the death of a waiting process delays no other. A process takes a
  // turn only when the turn has come.
  while (true) {
    const std::int64_t now = web.now_ms();
    std::int64_t at = now;
    change(now, [&](Turns& turns) {
      at = std::max({now, turns.question_ms, launch ? turns.launch_ms : 0});
      if (at > now) return;
      turns.question_ms = now + limits_.question.count();
      if (launch) turns.launch_ms = now + limits_.launch.count();
    });
    if (at == now) return {};
    if (at - began > limits_.longest_wait.count())
      return fail(Errc::unavailable,
                  "Lambda Cloud: too many commands of this account wait for their turn",
                  "Lambda allows one call a second and one launch in 12 s: try again later");
    LOCKSTEP_TRY(web.pause(std::chrono::milliseconds(at - now)));
  }
}

void LambdaPacer::put_off(const Web& web, std::chrono::milliseconds time) {
  const std::int64_t now = web.now_ms();
  change(now, [&](Turns& turns) {
    turns.question_ms =
        std::max(turns.question_ms, now + std::min<std::int64_t>(time.count(), kFarthestTurn));
  });
}

}  // namespace lockstep::cloud::lambda
