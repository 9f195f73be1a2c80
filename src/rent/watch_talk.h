// What a command and the host that watches its job (`--guard HOST`) say of that job, as JSON: both
// sides read it strictly. Pure. That host learns where outputs lie and what the job is called on
// the machines: none of its words, variables and secrets.
#pragma once

#include "base/error.h"
#include "codec/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

enum class WatchVerb {
  watch,    // it is to be watched: before the first launch, and with its id before it begins
  claim,    // it has ended, or lost its machines, and its command is there to see to that
  ask,      // how it is
  drop,     // its command has ended it
  fetched,  // its outputs are where they belong
};

struct WatchWord {
  WatchVerb verb = WatchVerb::ask;
  std::string rental;                  // its id
  std::string cluster = {};            // as its user calls it
  std::string tree = {};               // the project's name on the machines; "": there is none
  std::vector<std::string> back = {};  // places in it that are brought back
  std::string job = {};                // its id on the machines; "": not yet
};

std::string watch_word_text(const WatchWord& word);
// All of it that becomes a path or an argument is checked.
Result<WatchWord> read_watch_word(std::string_view text);

struct WatchAnswer {
  bool known = false;  // that host has heard of it
  bool taken = false;  // it ends it, or has: its command does nothing any more
  bool ended = false;
  int code = 0;                        // ended: the exit code
  std::string note = {};               // and what else is to be told
  std::string root = {};               // where its outputs lie there; "": there are none
  bool whole = false;                  // they are all there, of its last attempt
  std::vector<std::string> back = {};  // of the places that are brought back, those that are there
  std::string logs = {};  // the folder of what was said of it, as name_there() with one of these
  std::vector<std::string> log_endings = {};  // of kFollowLogEndings, what is there
};

nlohmann::ordered_json watch_answer_json(const WatchAnswer& answer);
Result<WatchAnswer> read_watch_answer(const nlohmann::json& object);

}  // namespace lockstep::rent
