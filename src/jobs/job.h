// The face of a job, wherever it runs. Commands know only this; jobs/places makes one from the
// job's record. Each place implements it in a folder of its own.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/job_status.h"

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
    leave,   // the job goes on
  };
  OnStop on_stop = OnStop::leave;
  bool print = true;                       // the job's output, to stdout and stderr
  bool to_end = true;                      // false: only the output that there is now
  bool json = false;                       // lines as objects, all of them on stdout
  bool fold = false;                       // equal lines of several ranks become one, for people
  std::optional<std::int64_t> lines = {};  // only the last so many of each output
  std::optional<std::int64_t> rank = {};   // only lines of this rank
  // Whether hosts that are away are gone for good, as rented machines may be. Asked every few
  // seconds while a host is away, on a thread of its own.
  std::function<bool()> gone = {};
};

// How following a job ended.
struct Followed {
  bool left = false;  // by a signal, before the job's end
  int signal = 0;     // which one
  bool gone = false;  // a host will not come back: FollowOptions::gone said so
  // Then: the longest time in which nothing was heard of all hosts, sleep of this machine included.
  std::chrono::milliseconds silent{0};
  JobStatus status;                       // not known where `left` or `gone`
  std::vector<std::string> missing = {};  // hosts whose output is missing or incomplete
};

struct Resumed {
  std::vector<std::string> nodes;  // the names of those that begin again
  std::vector<std::string> ahead;  // jobs that it waits for; empty: it runs
};

// One instance a job. Every call blocks until it has its answer or the user stops it (canceled,
// with the signal's number in Error::sys), and expects proc::handled_signals() blocked.
class Job {
 public:
  explicit Job(KnownJob record) : record_(std::move(record)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  const KnownJob& record() const { return record_; }

  // unavailable: nobody who knows the job answers.
  virtual Result<JobStatus> status() = 0;
  virtual Result<Followed> follow(const FollowOptions& options) = 0;
  // Returns once the job has ended, or all hosts that answer have been told.
  virtual Result<JobStatus> cancel() = 0;
  // Starts the lost parts again. env: "NAME=value", before the variables that are kept with the
  // job. invalid_input: nothing is lost, or this place resumes its jobs by itself.
  virtual Result<Resumed> resume(const std::vector<std::string>& env) = 0;

 protected:
  KnownJob record_;
};

}  // namespace lockstep::jobs
