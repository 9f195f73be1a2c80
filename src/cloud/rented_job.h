// What is kept of the job that a rental is for, so that somebody else goes on with it when the
// command that began it is gone: all that is needed is here, in the rental, and in the job's folder
// of the project. No value of a variable that was named without one, and no secret. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct RentedJob {
  enum class Stage {
    renting,  // machines for it are asked for
    working,  // they are there: it is brought, runs, or its outputs are brought back
    lost,     // they were taken away: what is left of them is ended, then it begins again
    ending,   // it has ended as `code` and `note` say: its machines are given back
    ended,    // they are, or never will be: nobody has told the user yet
  };

  std::string rental;              // its id
  std::string cluster;             // of the rental, for people
  std::vector<std::string> words;  // behind `lockstep run`; nothing else is read for options
  std::string folder;              // where the command was called
  std::string run_id = {};         // of all attempts; empty: each takes its own
  Stage stage = Stage::renting;
  int losses = 0;         // of all its machines
  bool brought = false;   // what --back names is here, or some of it, from machines that were taken
  std::string job = {};   // its id on the machines, before it begins there; empty: not yet
  int code = 0;           // from Stage::ending on: the exit code
  std::string note = {};  // and what else is to be told
  std::int64_t began_ms = 0;
  // What --back brings: `back`, below `root` here and below ~/`tree` on the machines; "": nothing.
  std::string root = {};
  std::string tree = {};
  std::vector<std::string> back = {};
  std::string watcher = {};   // the host of --guard HOST, which watches it, too
  std::int64_t heard_ms = 0;  // on that host: when the job's command was last heard to see to it
  bool taken = false;         // on that host: that one gives the machines back
  // There: the attempt, by its id on the machines, of which all that --back names has come.
  std::string whole = {};
  std::int64_t follower = 0;  // the process that goes on with it; 0: its command does

  // Whether it may begin anew on other machines.
  bool goes_on() const { return stage < Stage::ending; }
  // On that host: whether nothing of its last attempt is missing there.
  bool all_came() const { return back.empty() || (!job.empty() && whole == job); }
};

const char* rented_job_stage(RentedJob::Stage stage);
std::string rented_job_json(const RentedJob& job);
Result<RentedJob> parse_rented_job(std::string_view json);

}  // namespace lockstep::cloud
