// Sees what the workers of this node do: a look a second from outside (looks/looker.h), which stops
// no worker. Judges the looks, and answers commands that ask (status/job_socket.h). Alarms tells
// the user.
#pragma once

#include "agent/alarms.h"
#include "agent/collectives.h"
#include "agent/gpu_sight.h"
#include "agent/node.h"
#include "agent/timeout_watch.h"
#include "agent/world_sight.h"
#include "io/loop.h"
#include "looks/answer.h"
#include "looks/look_book.h"
#include "looks/looker.h"
#include "looks/node_line.h"
#include "looks/redo_watch.h"
#include "looks/row.h"
#include "looks/stack_source.h"
#include "looks/step_book.h"
#include "looks/straggler_watch.h"
#include "looks/verdict.h"
#include "rendezvous/round.h"
#include "status/job_socket.h"
#include "store/server.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::logs {
class Capture;
}

namespace lockstep::agent {

class Sight {
 public:
  // A worker, and what its output says.
  struct Target {
    int rank = 0;
    pid_t pid = 0;  // 0: the worker has ended
    std::int64_t output_bytes = 0;
    looks::Millis output_age = {};
    const logs::Capture* output = nullptr;  // valid until the next turn of the loop
  };

  class Listener {
   public:
    // The job hangs, and the user wants more than to know (--on-hang). why: one line.
    virtual void on_hang(const std::string& why) = 0;
    // After each look, before on_hang().
    virtual void on_look(const looks::Fold& fold, const looks::Verdict& verdict,
                         const looks::Redo& redo) = 0;
    // A rank makes the others wait from now on.
    virtual void on_straggler(const looks::WorldSlow& slow) = 0;
    // It no longer does. words: a line, which the log has.
    virtual void on_straggler_over(int rank, const std::string& words) = 0;
    // Returns where the time of this node went, in one line. "": not known yet.
    virtual std::string goodput() const = 0;

   protected:
    ~Listener() = default;
  };

  // workers: called at each look. store: returns the workers' store; nullptr: it is on another
  // node. way: to the other nodes of the job.
  Sight(io::Loop& loop, const Node& node, GpuSight& gpus,
        std::function<std::vector<Target>()> workers, std::function<const store::Server*()> store,
        WorldSight::Way way, Listener& listener);

  // Opens the socket. started: the process that the user started. more: what the socket answers
  // beside questions about looks. Without a socket the job goes on: the log says why there is none.
  void open(pid_t started, http::Handlers more);
  // folder: of the attempt's logs; empty: none. recorder: nullopt: workers are not asked for dumps.
  void attempt_started(const rendezvous::Round& round, std::int64_t attempt, std::string folder,
                       std::optional<RecorderFolder> recorder);
  // The workers are being stopped, or have ended. From now on nothing is claimed.
  void attempt_ends();
  // News of another node of the round.
  void on_news(int from, const std::string& text);
  // The agent ends: closes the socket.
  void close();

  // Returns what each rank of this node does, by the last look.
  looks::NodeRows rows();
  // The same with the GPUs. ask: they are read from now on for a while.
  looks::NodeRows rows_and_gpus(bool ask);
  // Returns what the ranks of all nodes do. Empty unless this node judges them: the others hear of
  // changes late, and not of every age.
  looks::NodeLines nodes() const;
  // Answers /why, with a looks::Question as its query: /why?rank=3.
  http::Response answer(const http::Request& request);

  // Returns a rank that has been in state D (uninterruptible sleep) for some seconds, by the last
  // look.
  std::optional<int> stuck_rank() const;

  // Says where the ranks of this node are at this moment, but for the failed one, one sentence
  // each. Call before they are stopped. Reads only processes that an earlier look knows, which
  // takes less than a millisecond.
  std::vector<std::string> where_others_are(std::optional<int> failed);

 private:
  void on_look(std::vector<looks::RankLook>& seen, io::TimePoint now);
  void aim();
  pid_t subject_of(const Target& worker);
  WorldSight::Pids own_pids() const;
  void judge(io::TimePoint now);
  looks::Redo redo();
  void ask_store(const WorldSight::Pids& pids);
  void find_timeout(const std::vector<Target>& workers);
  void find_straggler(const looks::Verdict& verdict, io::TimePoint now);
  void tell_straggler(const looks::StragglerWatch::News& news, const std::string& node);
  void hear_straggler(const looks::WorldSlow& told);
  void end_straggler(int rank);
  void forget_stragglers();
  WorldSight::Own own_facts() const;
  std::string own_waits() const;
  std::optional<int> gpu_of(int rank) const;
  looks::Verdict shown() const;
  std::string words(io::TimePoint now) const;
  std::string state() const;
  std::string evidence_text();
  void add_output(looks::Answer& answer, int rank, io::TimePoint now) const;
  void look_once();

  io::Loop& loop_;
  const Node& node_;
  GpuSight& gpus_;
  std::function<std::vector<Target>()> workers_;
  std::function<const store::Server*()> store_;
  Listener& listener_;
  looks::ProcessReader reader_;
  looks::StackSource stacks_;
  looks::LookBook book_;
  looks::Judge judge_;
  looks::StragglerWatch straggler_;        // of this node's ranks
  looks::WorldStraggler world_straggler_;  // of all ranks, if this node judges them
  looks::WorldSlow slow_;                  // as it was told last
  looks::StepBook steps_;
  looks::RedoWatch redo_;
  std::optional<int> stepping_;  // the rank whose steps count in this attempt
  looks::Looker looker_;
  Collectives collectives_;
  Alarms alarms_;
  std::unique_ptr<status::JobSocket> socket_;
  std::vector<looks::Looker::Target> aimed_;
  std::vector<looks::RankLook> seen_;  // by the last look
  looks::Fold fold_;                   // of this node's ranks
  WorldSight world_;
  looks::Fold whole_;         // of the ranks of all nodes, if this node judges them
  looks::Evidence evidence_;  // by the last look
  TimeoutWatch timeout_;
  std::int64_t attempt_ = 0;
  rendezvous::Round round_;
};

}  // namespace lockstep::agent
