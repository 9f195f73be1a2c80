// The job of a rental, as the journal keeps it. With this record, the rental and the project's
// folder another process can continue the job after its command is gone. The record contains no
// secrets: of a variable named without a value, only the name is kept. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct RentedJob {
  enum class Stage {
    renting,  // machines are being rented
    working,  // the machines run: files go there, the job runs, or outputs come back
    lost,     // machines were preempted: the rest is terminated, then the job begins again
    ending,   // the job has ended as `code` and `note` say: its machines are terminated
    ended,    // the machines are gone, or never will be; the user has not been told yet
  };

  std::string rental;              // the rental's id
  std::string cluster;             // the rental's, for people
  std::vector<std::string> words;  // arguments of `lockstep run`; options come from them alone
  std::string folder;              // working directory of the command, absolute
  std::string run_id = {};         // for all attempts; empty: each attempt has its own
  Stage stage = Stage::renting;
  int losses = 0;          // how often the machines were lost
  bool brought = false;    // outputs (--back) of lost machines came back, at least in part
  std::string job = {};    // the job's id on the machines, kept before it begins; empty: not yet
  bool succeeded = false;  // the job has ended well: it never begins again
  int code = 0;            // exit code; from Stage::ending on
  std::string note = {};   // what else the user is told
  std::int64_t began_ms = 0;
  // The host of --guard HOST, which owns the rental: journal, course and guard are there. Empty:
  // this machine owns the rental.
  std::string host = {};
  // With `host`: the files to bring at the end, as paths `back` below `root` here and below `tree`
  // in the home there. Without `host`, `back` is --back as given, and the others are empty.
  std::string root = {};
  std::string tree = {};
  std::vector<std::string> back = {};
  // On that host: the installation that began the job. Only commands of that installation tell the
  // end of the job.
  std::string client = {};
  std::int64_t follower = 0;  // pid of the process of the course; 0: the command still rents
  std::vector<std::string> ahead = {};  // jobs that the last attempt waited for

  // Returns whether the job may begin again on other machines.
  bool goes_on() const { return stage < Stage::ending; }
};

// Takes a job whose end no process has noted, and will not see any more, to Stage::ending. unseen:
// the note if nothing tells how the job ended. A noted success stays one if no outputs were asked
// for.
void end_unseen(RentedJob& job, std::string unseen);

const char* rented_job_stage(RentedJob::Stage stage);
std::string rented_job_json(const RentedJob& job);
Result<RentedJob> parse_rented_job(std::string_view json);

}  // namespace lockstep::cloud
