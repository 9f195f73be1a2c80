// Judges a job by the looks at all its ranks: trains, waits, or hangs. Pure.
//
// "Hung" is a claim that needs proof: nothing that counts has moved for longer than five times the
// longest quiet span before. Everything else is "waiting" or "quiet", and clears itself.
#pragma once

#include "io/loop.h"
#include "looks/evidence.h"
#include "looks/fold.h"
#include "looks/suspects.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

enum class VerdictState { starting, training, waiting, quiet, hung, stopped, ended };
inline constexpr std::array<std::string_view, 7> kVerdictStateWords = {
    "starting", "training", "waiting", "quiet", "hung", "stopped", "ended"};

struct VerdictRules {
  Millis period = Millis(1000);  // between looks
  // --hang-after: nullopt decides by itself; 0 never claims a hang.
  std::optional<Millis> hang_after = {};
  Millis least = Millis(30'000);
  Millis least_before_training = Millis(120'000);
  int factor = 5;
  Millis shown = Millis(5000);  // shorter waits are not worth a word
};

struct Surroundings {
  int world = 0;            // ranks of the round. Fewer looks: some nodes are silent or not ours
  bool changing = false;    // a round forms, a restart runs, the job is being stopped
  std::string unseen = {};  // why some ranks are not seen, in words; "": not known
  bool step_seen = false;   // the output has shown a step of the training
  Evidence evidence = {};
};

struct Verdict {
  VerdictState state = VerdictState::starting;
  Millis since = {};  // for so long
  Millis limit = {};  // after so long a quiet job counts as hung; 0: never
  // The first look with this alarm: tell the user. hung, or stopped while others wait.
  bool alarm = false;
  bool alarm_begins = false;
  // Set if the state is waiting, hung or stopped: the waiting ranks and the awaited ranks.
  std::vector<int> waiting = {};
  std::vector<Suspect> awaited = {};
  Place place = {};  // of the ranks that are waited for
  // Why a job that stands still is not called hung: "rank 0 saves a checkpoint". "": nothing.
  std::string hold = {};
  bool spins = false;  // ranks use CPU, but are inside a collective that stands still
};

class Judge {
 public:
  explicit Judge(const VerdictRules& rules = {}) : rules_(rules) {}

  // Expects the fold of all ranks, once a period.
  const Verdict& feed(const Fold& fold, const Surroundings& around, io::TimePoint now);
  const Verdict& verdict() const { return verdict_; }
  Millis longest_quiet() const { return longest_quiet_; }

 private:
  void begin_anew(io::TimePoint now);
  void note_training(const Fold& fold, const Surroundings& around);
  void note_quiet(Millis quiet, bool held);
  void note_same(const Fold& fold);
  Millis limit() const;
  bool is_expected_to_move(const Fold& fold, const Evidence& evidence) const;
  // How long a rank of a group has stood still, as far as this judge may count.
  Millis idle(const Group& group, int rank, const Evidence& evidence, io::TimePoint now) const;
  Millis idle(const Fold& fold, const Evidence& evidence, io::TimePoint now) const;
  bool find_wait(const Fold& fold, const Surroundings& around, io::TimePoint now, Verdict& into);
  Verdict judge(const Fold& fold, const Surroundings& around, io::TimePoint now);

  VerdictRules rules_;
  Verdict verdict_;
  std::optional<io::TimePoint> last_;
  io::TimePoint anew_ = {};
  int world_ = 0;
  int collective_looks_ = 0;
  bool training_ = false;
  Millis quiet_ = {};
  Millis longest_quiet_ = {};
  // The longest time that all ranks of a healthy job kept their stacks: a long step of the GPU.
  Millis same_ = {};
  Millis longest_same_ = {};
  bool spins_ = false;
  bool held_ = false;
};

}  // namespace lockstep::looks
