// The interface of a job, wherever the job runs. Commands know only this interface. jobs/places
// makes a Job from the job's record. Each place has a folder with an implementation.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/job_status.h"
#include "jobs/job_why.h"
#include "looks/answer.h"
#include "looks/question.h"
#include "looks/row.h"
#include "page/page_answer.h"
#include "status/event_ring.h"
#include "status/profile_answer.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
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

// Facts that the place of a job knows beyond the job's record.
struct PlaceFacts {
  struct Run {
    std::string number;  // the run's number, as PlaceFacts::number; "": not known
    std::string cause;   // the cause of the run's end, in one word
  };
  // The only host that reaches the job's ranks and their nodes; "": this machine does.
  std::string owner = {};
  // The job's number for the programs of the place, as for squeue; "": the place has no numbers.
  std::string number = {};
  // All numbers of a job that has several at the same time, in their order.
  std::vector<std::string> numbers = {};
  std::string output = {};  // the file with the job's output; "": none, or not known
  // The runs before the present one; nullopt: the place does not count runs, or none has begun.
  std::optional<std::vector<Run>> earlier = {};
  // How often the job may continue as a new job of the place; 0: without limit. nullopt: never.
  std::optional<int> chain = {};
};

// A node's answer about its status page.
struct PageThere {
  // Leads to the agent's node. Both nullopt: an agent on this machine.
  std::optional<hosts::HostPlace> host = {};
  std::optional<hosts::LinkCommand> link = {};
  page::PageAnswer page = {};

  bool is_here() const { return !link && (!host || host->here); }
};

// A question about a profile. hosts: indices of the hosts to ask; empty: all.
struct ProfileRequest {
  status::ProfileQuery query = {};
  std::set<int> hosts = {};
};
// The answers of a job's agents about a profile. A host is an index into the nodes of the job's
// record; this machine is host 0.
struct ProfileAnswers {
  struct Agent {
    int host = 0;
    status::ProfileAnswer says = {};
  };
  std::vector<Agent> agents = {};
  std::map<int, std::string> silent = {};  // why a host has not answered
};
// A finished trace, as an agent names it.
struct TraceThere {
  int host = 0;
  std::string folder = {};
  std::int64_t profile = 0;
  int rank = 0;
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
  // Returns facts that are known without a question to another machine.
  virtual PlaceFacts facts() const { return {}; }
  // Returns the id by which users know the job: the number of its place, or else ours.
  std::string id_for_people() const {
    const std::string number = facts().number;
    return number.empty() ? record_.id : number;
  }

  // Asks for the job's status. unavailable: no host that knows the job answers.
  virtual Result<JobStatus> status() = 0;
  // Returns whether the job may begin again by itself on other machines, although it has ended.
  virtual bool may_begin_again() const { return false; }
  // Explains the job's state. unavailable as for status().
  virtual Result<Explanation> why() = 0;
  // Asks what the ranks do now: one answer from each node that answers. Empty: no rank runs, or
  // this place cannot tell.
  virtual Result<std::vector<looks::Answer>> looks(const looks::Question& question) {
    (void)question;
    return std::vector<looks::Answer>();
  }
  // Returns the failure reports of a sweep's row (docs/report.md): one from each node of the row
  // that has one. host: ran the row. Empty: no report is reached.
  virtual std::vector<nlohmann::json> row_reports(std::size_t row, const std::string& host) {
    (void)row, (void)host;
    return {};
  }
  // Asks what the ranks of a sweep's running row do now, as looks().
  virtual Result<std::vector<looks::Answer>> row_looks(std::size_t row, const std::string& host) {
    (void)row, (void)host;
    return std::vector<looks::Answer>();
  }
  // Asks for a row of each rank: one answer from each node that answers, in the order of their
  // ranks. Empty: as for looks().
  virtual Result<std::vector<looks::NodeRows>> ranks() { return std::vector<looks::NodeRows>(); }
  // Asks for the events after a number: one answer from each agent that answers, or from the report
  // of an ended job. Empty: no agent answers, or this place cannot tell.
  virtual Result<std::vector<status::EventAnswer>> events(std::int64_t after) {
    (void)after;
    return std::vector<status::EventAnswer>();
  }
  // Asks where the page of node `node` of the round is. That node opens one on its loopback if it
  // serves none. One answer from each node that answers. Empty: as for looks().
  virtual Result<std::vector<PageThere>> page(int node) {
    (void)node;
    return std::vector<PageThere>();
  }
  // Returns the least time between two questions to the agents that the place can bear.
  virtual std::chrono::seconds pause() const { return std::chrono::seconds(0); }
  // Asks the agents about a profile of their ranks.
  virtual Result<ProfileAnswers> profile(const ProfileRequest& request) {
    (void)request;
    return ProfileAnswers();
  }
  // Brings a finished trace to the file `to` of this machine. An older file stays after an error.
  // meanwhile: called often while bytes come. It may ask the agents, and its error ends the fetch.
  virtual Status bring_trace(const TraceThere& trace, const std::string& to,
                             const std::function<Status()>& meanwhile) {
    (void)trace, (void)to, (void)meanwhile;
    return fail(Errc::not_found, "the trace is no longer there");
  }
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
