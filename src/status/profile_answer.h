// What the agent of a node says of its ranks' profilers: asked by `lockstep profile`. Pure.
#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::status {

enum class ProfileState {
  absent,   // no process of the rank has asked for an order
  waiting,  // a process asks, and has not got the order yet
  busy,     // a process asks, but takes another profile already
  ordered,  // a process has got the order, and writes its file at the end of the profile
  gone,     // the rank has ended
  written,  // the trace is finished, and can be fetched (only look_for_traces() says so)
};
inline constexpr std::array<std::string_view, 6> kProfileWords{"absent",  "waiting", "busy",
                                                               "ordered", "gone",    "written"};

struct RankProfile {
  int rank = 0;
  ProfileState state = ProfileState::absent;
};

struct ProfileAnswer {
  std::string node = {};
  std::string refusal = {};  // the reason for no profile, one line; empty: the profile began
  std::string hint = {};     // what to do then
  bool late = false;         // the agent has not answered in time
  std::int64_t id = 0;       // of the profile
  std::string folder = {};   // where the ranks write
  // The ranks of this node in the profile. Empty: it has none of them, or the profile is over.
  std::vector<RankProfile> ranks = {};
};

// What to profile, as the query of a request: "steps=5&every=1&ms=0&limit=120&ranks=0-3,7".
struct ProfileWish {
  int steps = 0;  // 0: `millis` counts
  int every = 1;  // begin with a step whose number is a multiple of this
  int millis = 0;
  int limit = 120;         // seconds after which the agent forgets the profile
  std::string ranks = {};  // empty: all; ranks of other nodes are passed over
};

inline constexpr std::int64_t kMostProfileId = 1LL << 40;
inline constexpr int kMostProfileSteps = 10'000;
inline constexpr int kMostProfileSeconds = 3600;

// The query of a request about the profile `id`: "do=look&id=3". The command makes the id, so that
// all agents of a job know a profile by one id.
struct ProfileQuery {
  enum class What { start, look, end };
  What what = What::look;
  std::int64_t id = 0;    // from 1 to kMostProfileId
  ProfileWish wish = {};  // of start
};
std::string print_profile_query(const ProfileQuery& query);
Result<ProfileQuery> read_profile_query(std::string_view query);

std::string profile_answer_json(const ProfileAnswer& answer);
Result<ProfileAnswer> read_profile_answer(std::string_view text);

// The beginning of the names of all traces.
inline constexpr std::string_view kProfileFileHead = "profile-";
// Returns the beginning of a trace's file name: Kineto adds "_PID.json".
std::string profile_file_stem(std::int64_t id, int rank);
// Returns whether a name in the folder is the finished trace of that rank.
bool is_profile_file(std::string_view name, std::int64_t id, int rank);

}  // namespace lockstep::status
