// Ranks that do what a test says, looked at once a second of a fake clock.
#pragma once

#include "looks/doing.h"
#include "looks/fold.h"
#include "looks/look_book.h"
#include "looks/verdict.h"

#include <sys/syscall.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::looks {

inline const std::string kTorch = "/usr/lib/python3/dist-packages/torch/";

inline stacks::ThreadStack stack_of(std::vector<stacks::Frame> frames) {
  return {.tid = 1, .frames = std::move(frames)};
}

// Stacks as V4 of the specification found them in real jobs.
inline std::vector<stacks::Frame> in_backward() {
  return {{"_engine_run_backward", kTorch + "autograd/graph.py", 824},
          {"backward", kTorch + "autograd/__init__.py", 347},
          {"Tensor.backward", kTorch + "_tensor.py", 626},
          {"train", "/home/u/job.py", 61},
          {"<module>", "/home/u/job.py", 70}};
}
inline std::vector<stacks::Frame> in_collective(const std::string& call, int line) {
  return {{call, kTorch + "distributed/distributed_c10d.py", 2730},
          {"wrapper", kTorch + "distributed/c10d_logger.py", 81},
          {"train", "/home/u/job.py", line},
          {"<module>", "/home/u/job.py", 70}};
}
inline std::vector<stacks::Frame> in_init() {
  return {{"_create_c10d_store", kTorch + "distributed/rendezvous.py", 189},
          {"_env_rendezvous_handler", kTorch + "distributed/rendezvous.py", 278},
          {"init_process_group", kTorch + "distributed/distributed_c10d.py", 1710},
          {"<module>", "/home/u/job.py", 12}};
}
inline std::vector<stacks::Frame> in_own_code(int line, const std::string& function = "hang_here") {
  return {{function, "/home/u/job.py", line},
          {"train", "/home/u/job.py", 55},
          {"<module>", "/home/u/job.py", 70}};
}
inline std::vector<stacks::Frame> in_loader() {
  return {
      {"_SelectorImpl.select", "/usr/lib/python3.13/selectors.py", 398},
      {"Connection.poll", "/usr/lib/python3.13/multiprocessing/connection.py", 257},
      {"Queue.get", "/usr/lib/python3.13/multiprocessing/queues.py", 111},
      {"_MultiProcessingDataLoaderIter._try_get_data", kTorch + "utils/data/dataloader.py", 1243},
      {"_MultiProcessingDataLoaderIter._next_data", kTorch + "utils/data/dataloader.py", 1448},
      {"train", "/home/u/job.py", 57},
      {"<module>", "/home/u/job.py", 70}};
}
inline std::vector<stacks::Frame> in_loader_child(int line) {
  return {{"Data.__getitem__", "/home/u/data.py", line},
          {"_MapDatasetFetcher.fetch", kTorch + "utils/data/_utils/fetch.py", 52},
          {"_worker_loop", kTorch + "utils/data/_utils/worker.py", 351}};
}
inline std::vector<stacks::Frame> in_idle_loader_child() {
  return {{"Queue.get", "/usr/lib/python3.13/multiprocessing/queues.py", 111},
          {"_worker_loop", kTorch + "utils/data/_utils/worker.py", 320}};
}
inline std::vector<stacks::Frame> in_save() {
  return {{"_save", kTorch + "serialization.py", 1100},
          {"save", kTorch + "serialization.py", 943},
          {"write", "/home/u/job.py", 30},
          {"<module>", "/home/u/job.py", 70}};
}

// A process that stands still, until a test moves it.
inline ProcessLook asleep(char state, const std::string& wchan, int syscall = SYS_futex) {
  return {.state = state, .start_ticks = 77, .wchan = wchan, .syscall = syscall};
}

class FakeJob {
 public:
  using Act = std::function<void(RankLook&)>;  // changes a look within a second

  explicit FakeJob(int ranks, VerdictRules rules = {.hang_after = Millis(5000)}) : judge_(rules) {
    around.world = ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      RankLook look{.rank = rank, .pid = 1000 + rank, .process = asleep('S', "futex_do_wait")};
      look.stack = stack_of(in_backward());
      looks.push_back(look);
    }
  }

  // A second of training: each rank moves on, and is found in a step.
  void train(int seconds = 1) {
    for (int i = 0; i < seconds; ++i) {
      for (RankLook& look : looks) {
        look.process->main_ns += 400'000'000;
        look.process->cpu_ticks += 60;
        look.stack = stack_of(i % 2 == 0 ? in_backward() : in_own_code(50 + i % 5, "train"));
      }
      look();
    }
  }
  // The ranks but `spared` stand in DDP's all-reduce.
  void others_wait(const std::vector<int>& spared) {
    for (RankLook& look : looks)
      if (std::find(spared.begin(), spared.end(), look.rank) == spared.end())
        look.stack = stack_of(in_backward());
  }
  // Passes a second, in which gloo's threads wake in each rank, and looks.
  const Verdict& second(const Act& act = {}) {
    for (RankLook& look : looks) {
      if (!look.process) continue;
      if (look.process->state != 'T' && ++beat_ % 5 == 0) ++look.process->cpu_ticks;
      if (act) act(look);
    }
    return look();
  }
  const Verdict& seconds(int count, const Act& act = {}) {
    for (int i = 0; i < count; ++i)
      second(act);
    return judge_.verdict();
  }

  const Verdict& look(std::chrono::milliseconds passed = std::chrono::milliseconds(1000)) {
    now += passed;
    folded = book_.feed(looks, now);
    const Verdict& verdict = judge_.feed(folded, around, now);
    if (verdict.alarm) ++alarms;
    if (verdict.alarm_begins) ++begun;
    return verdict;
  }
  const Verdict& verdict() const { return judge_.verdict(); }
  Judge& judge() { return judge_; }

  std::vector<RankLook> looks;
  Surroundings around;
  Fold folded;
  io::TimePoint now{std::chrono::hours(5)};
  int alarms = 0;  // looks with an alarm
  int begun = 0;

 private:
  LookBook book_{"n1", std::chrono::milliseconds(1000)};
  Judge judge_;
  int beat_ = 0;
};

}  // namespace lockstep::looks
