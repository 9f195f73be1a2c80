// The interface of a job, wherever the job runs. Commands know only this interface. jobs/places
// makes a Job from the job's record. Each place has a folder with an implementation.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/job_status.h"
#include "jobs/job_why.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs {

struct FollowOptions {
  enum class OnStop {
    cancel,  // Ctrl-C ends the job; SIGHUP leaves it
    leave,   // Ctrl-C ends only the following
    // SIGINT ends the job; any other signal ends only the following.
    interrupt_cancels,
  };
  OnStop on_stop = OnStop::leave;
  bool print = true;                       // print the job's output to stdout and stderr
  bool to_end = true;                      // false: only the output that exists now
  bool json = false;                       // print lines as JSON objects, all on stdout
  bool fold = false;                       // print equal lines of several ranks as one, for people
  std::optional<std::int64_t> lines = {};  // only this many last lines of each output
  std::optional<std::int64_t> rank = {};   // only lines of this rank
  // Returns whether silent hosts are gone for good, as rented machines may be. Called every few
  // seconds while a host is silent, on a thread of its own.
  std::function<bool()> gone = {};
};

// How following a job ended.
struct Followed {
  bool left = false;  // a signal ended the following before the job's end
  int signal = 0;     // its number
  bool gone = false;  // a host will not come back: FollowOptions::gone said so
  // With `gone`: how long ago all hosts were last heard for certain. Includes the time in which
  // this machine slept.
  std::chrono::milliseconds silent{0};
  JobStatus status;                       // not known if `left` or `gone`
  std::vector<std::string> missing = {};  // hosts whose output is missing or incomplete
};

struct Resumed {
  std::vector<std::string> nodes;  // names of the resumed nodes
  std::vector<std::string> ahead;  // jobs ahead in the queue; empty: the job runs
};

// One job. Each call blocks until the answer comes or the user stops the call (canceled, with the
// signal's number in Error::sys). Callers must have blocked proc::handled_signals().
class Job {
 public:
  explicit Job(KnownJob record) : record_(std::move(record)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  const KnownJob& record() const { return record_; }

  // Asks for the job's status. unavailable: no host that knows the job answers.
  virtual Result<JobStatus> status() = 0;
  // Explains the job's state. unavailable as for status().
  virtual Result<Explanation> why() = 0;
  // Prints the job's output, and waits for its end if `to_end` is set.
  virtual Result<Followed> follow(const FollowOptions& options) = 0;
  // Cancels the job. Returns once the job has ended, or once all answering hosts have been told.
  virtual Result<JobStatus> cancel() = 0;
  // Starts the lost parts again. env: "NAME=value", which override the variables kept with the job.
  // invalid_input: nothing is lost, or this place resumes its jobs by itself.
  virtual Result<Resumed> resume(const std::vector<std::string>& env) = 0;

 protected:
  KnownJob record_;
};

}  // namespace lockstep::jobs
