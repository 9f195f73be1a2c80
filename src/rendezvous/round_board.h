// What the Lockstep agents of one round tell one another through the store that the round has,
// under keys that torchrun's agents never look at: the first failure, and at the end everybody's
// report.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/key_value.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct FailureRecord {
  int node = 0;  // its rank in the round
  std::string line;
  bool final = false;  // no restart is left: the job has failed
  int restarts = 0;    // used up by the job, this one included
  bool gone = false;   // the node itself is no longer there: no report of it will come
  bool operator==(const FailureRecord&) const = default;
};
std::string encode_failure(const FailureRecord& record);
Result<FailureRecord> decode_failure(std::string_view json);

// What node `rank` says to that.
std::string told_line(const FailureRecord& record, int rank);

class RoundBoard {
 public:
  // prefix: of the round's keys. ours: by rank, whether the node is a Lockstep agent.
  RoundBoard(io::Loop& loop, KeyValue& keys, std::string prefix, int rank, std::vector<bool> ours);

  // The round's first failure, when another node had it; or when another says that this one is
  // gone, which it may hear late: it was frozen, or cut off.
  void on_failure(std::function<void(const FailureRecord&)> fn);
  // Counts unless another node was first. done may be empty.
  void tell(const FailureRecord& record, KeyValue::Done<std::string> done = nullptr);
  // A failure was told, by whomever; what it was may be lost with the store.
  bool alarmed() const { return alarm_ && alarm_->there() && !concluded_; }
  // All nodes are done. The store decides, for all of them alike, whether that or a failure came
  // first: nullopt, all ended well, also where the store does not say.
  void conclude(std::function<void(const std::optional<FailureRecord>&)> done);
  // The node is gone: its report is not waited for.
  void miss(int rank);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done);

 private:
  std::string key(std::string_view name) const;
  void note_first(const Result<std::string>& text);
  void all_came();
  void collect();
  void finish();

  KeyValue& keys_;
  std::string prefix_;
  int rank_;
  std::vector<bool> ours_;
  std::unique_ptr<KeyValue::Watch> alarm_;
  std::function<void(const FailureRecord&)> on_failure_;
  std::optional<FailureRecord> first_;
  std::optional<FailureRecord> told_;

  bool concluded_ = false;  // that there is no failure
  bool telling_ = false;    // the store has not answered yet whose failure came first
  bool all_came_ = false;
  std::vector<int> asked_;
  std::size_t answered_ = 0;
  std::vector<NodeReport> reports_;
  std::function<void(std::vector<NodeReport>)> reports_done_;
  io::Timer report_timer_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous
