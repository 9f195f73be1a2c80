// The requests of a client to the host that owns a rental (`run --on-demand --guard HOST`), and the
// answers: JSON on stdin and stdout of `lockstep host-rental`. Pure.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::rented {

// The subcommand takes a verb:
//   plan, begin           with an OwnerRequest on stdin: prints what would be rented, or begins
//   state RENTAL          prints an OwnedState
//   follow RENTAL HOW SHOWN [canceled|to-end]
//                         prints the log of the course on stdout, with the marks of stream_text.h,
//                         from byte SHOWN of the whole log on; marks do not count, and dropped
//                         bytes do. stderr has the host's own words.
//                         HOW: all; quiet (only waits); start, start-json (until the job has
//                         started). canceled: cancels the job first. to-end: the user has
//                         canceled it before, and wants to see the end. A signal other than SIGINT,
//                         which cancels, ends the process. stdout says when the course has got a
//                         cancellation (StreamEncoder::canceled())
//   told RENTAL           forgets the job: its user knows the end
//   ask RENTAL NAME ...   runs a user's command about the rental
//   look RENTAL QUESTION ...
//                         prints what the agents of the job answer: see answer_look()
inline constexpr const char* kHostRental = "host-rental";
inline constexpr const char* kOwnerLook = "look";
inline constexpr const char* kFollowQuiet = "quiet";
inline constexpr const char* kFollowCanceled = "canceled";
inline constexpr const char* kFollowToEnd = "to-end";

// A job to begin on the host. The client chooses the id of the rental: a lost answer then leaves no
// rental that the client does not know.
struct OwnerRequest {
  std::string rental;
  std::string cluster;
  std::string client;              // the client's installation
  std::string folder;              // working directory, absolute or relative to the home there
  std::vector<std::string> words;  // of `lockstep run`
  // Values for the names in --env NAME and --secret NAME of `words`. They stay in the memory of the
  // course: neither its command line nor a file has them.
  std::map<std::string, std::string> variables = {};
};
std::string owner_request_text(const OwnerRequest& request);
// Checks all members that become a path or an argument.
Result<OwnerRequest> read_owner_request(std::string_view text);

// The variable that gives the values of a request to the process of the course. Linux bounds a
// variable, with its name, to 128 KiB.
inline constexpr const char* kRequestVariable = "LOCKSTEP_OWNER_REQUEST";
inline constexpr std::size_t kMostKept = 128'000;  // bytes
// Returns the value of that variable: the request without what only the command needs.
std::string kept_request_text(const OwnerRequest& request);

// A job as the host knows it.
struct OwnedState {
  bool known = false;              // the host has a record of the job
  bool ended = false;              // its course has ended, and `code` and `note` are final
  std::string state = "starting";  // a word of jobs::state_name()
  int code = 0;
  std::string note = {};  // for people
  std::string job = {};   // the job's id on its machines; empty: not yet
};
std::string owned_state_text(const OwnedState& state);
Result<OwnedState> read_owned_state(std::string_view text);

}  // namespace lockstep::jobs::rented
