// Where the time of a job went: its wall time by phase, and the share in which it trained. Pure:
// the driver reports phases and looks, each with the time of a clock that only moves forward.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::status {

enum class Phase {
  rendezvous,  // the nodes agree on a round
  start,       // from the start of the workers until the job trains
  training,
  redone,    // training again what an earlier attempt had trained
  waiting,   // all ranks stand still, or wait for one: also a hang
  input,     // ranks wait for batches, or make them
  stopping,  // from the order to stop until the last worker has ended
  down,      // no worker runs: pauses before restarts, and the end of the job
};
inline constexpr std::array<std::string_view, 8> kPhaseWords = {
    "rendezvous", "start", "training", "redone", "waiting", "input", "stopping", "down"};

class Goodput {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  explicit Goodput(TimePoint now, Phase phase = Phase::rendezvous) : phase_(phase), last_(now) {}

  // The time from now on belongs to this phase. Time between looks is the earlier phase's.
  void enter(Phase phase, TimePoint now);
  // A look at the ranks has shown what the time since the last call was: this phase, but for a
  // share of input (0 to 1). Ignored unless the workers run: only start, training, redone, waiting
  // and input are seen by looks.
  void look(Phase seen, double input_share, TimePoint now);
  // Step lines tell training from redone. guessed: they are guesses. nullopt: none are known.
  void know_steps(std::optional<bool> guessed) {
    knows_steps_ = guessed.has_value();
    guessed_ = guessed.value_or(guessed_);
  }

  // Returns the sums up to now, for an observer. Time since the last look is left out, because the
  // next look decides about it: no sum ever falls.
  Goodput at(TimePoint now) const;

  Phase phase() const { return phase_; }
  // Returns the time of a phase up to the last call.
  Duration of(Phase phase) const { return spent_[static_cast<std::size_t>(phase)]; }
  Duration total() const;
  // Returns whether anything is known about a phase. Without step lines, redone counts as training.
  bool knows(Phase phase) const;
  // Returns whether the time of a phase follows from a guess at step lines.
  bool guesses(Phase phase) const { return phase == Phase::redone && guessed_; }
  // Returns training's share of the total, 0 to 1, with four digits. 0 before any time has passed.
  double share() const;

 private:
  void spend(Phase phase, double share, Duration time);

  Phase phase_;
  TimePoint last_;
  bool knows_steps_ = false;
  bool guessed_ = true;
  std::array<Duration, kPhaseWords.size()> spent_ = {};
};

// Returns "goodput 91 % (training 10 min 55 s, start 40.0 s, rendezvous 1.0 s)": phases of at least
// a second and a thousandth of the total, the longest first. "~": a guess. "": the looks have never
// seen the job train, or the job was shorter than a minute, which is mostly start.
std::string goodput_words(const Goodput& goodput);

}  // namespace lockstep::status
