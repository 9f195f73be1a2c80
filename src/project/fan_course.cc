#include "project/fan_course.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::project {

FanCourse::Next FanCourse::on_answer(std::size_t host, const peer::Answer& answer) {
  if (const auto* trouble = std::get_if<peer::Trouble>(&answer)) {
    on_failed(host, trouble->why);
    return Next::wait;
  }
  if (host == kSeed) {
    // A second Listening would start the takers twice: only the first one counts.
    const bool listens = std::holds_alternative<peer::Listening>(answer);
    return listens && !std::exchange(listening_, true) ? Next::start_takers : Next::wait;
  }
  Taker& taker = takers_[host - 1];
  // A late answer of a taker that was given up must not bring the taker back. The client sends the
  // files already.
  if (taker.over) return Next::wait;
  if (std::holds_alternative<peer::Connected>(answer)) {
    taker.connected = true;
  } else if (const auto* progress = std::get_if<peer::Progress>(&answer)) {
    taker.bytes = progress->bytes;
  } else if (const auto* done = std::get_if<peer::Done>(&answer)) {
    taker.bytes = done->bytes;
    taker.over = true;
    // A file may change at the client or on the seed, and then never becomes what was offered.
    if (done->missing != 0)
      taker.trouble = fmt::format("{} of the files never arrived there", done->missing);
  }
  return Next::tell;
}

void FanCourse::on_failed(std::size_t host, const std::string& why) {
  for (std::size_t i = 0; i < takers_.size(); ++i) {
    Taker& taker = takers_[i];
    if (taker.over || (host == kSeed ? taker.connected : host != i + 1)) continue;
    taker.over = true;
    taker.trouble = why;
  }
}

void FanCourse::on_late() {
  for (std::size_t i = 0; i < takers_.size(); ++i)
    if (!takers_[i].connected) on_failed(i + 1, "the two hosts did not connect in time");
}

bool FanCourse::waits() const {
  return std::any_of(takers_.begin(), takers_.end(), [this](const Taker& taker) {
    return !taker.over && !(opening_ && taker.connected);
  });
}

bool FanCourse::any_connected() const {
  return std::any_of(takers_.begin(), takers_.end(),
                     [](const Taker& taker) { return taker.connected; });
}

std::uint64_t FanCourse::bytes() const {
  std::uint64_t bytes = 0;
  for (const Taker& taker : takers_)
    bytes += taker.bytes;
  return bytes;
}

}  // namespace lockstep::project
