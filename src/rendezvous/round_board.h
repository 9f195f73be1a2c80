// The notes of a round's Lockstep agents in the round's store: the first failure, and at the end
// every node's report. torchrun's agents never look at these keys.
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
  int node = 0;  // rank in the round
  std::string line;
  bool final = false;  // no restart is left: the job has failed
  int restarts = 0;    // restarts used up by the job, including this one
  bool gone = false;   // the node itself is gone: no report will come
  bool operator==(const FailureRecord&) const = default;
};
std::string encode_failure(const FailureRecord& record);
Result<FailureRecord> decode_failure(std::string_view json);

// Returns the line of the failure as node `rank` prints it.
std::string told_line(const FailureRecord& record, int rank);

class RoundBoard {
 public:
  // prefix: of the round's keys. ours: by rank, whether the node has a Lockstep agent.
  RoundBoard(io::Loop& loop, KeyValue& keys, std::string prefix, int rank, std::vector<bool> ours);

  // Sets the function for the first failure of the round on another node. Also called if another
  // node has reported this node as gone, which a frozen or cut off node may learn late.
  void on_failure(std::function<void(const FailureRecord&)> fn);
  // Asks the store at once for a failure that on_failure() has not heard of yet. none: called if
  // the store has none.
  void look(std::function<void()> none);
  // Records a failure, unless another node's is first. done may be empty.
  void tell(const FailureRecord& record, KeyValue::Done<std::string> done = nullptr);
  // Returns whether some node has recorded a failure, even if a lost store loses the record.
  bool alarmed() const { return alarm_ && alarm_->there() && !concluded_; }
  // Called when all nodes are done. The store decides for all nodes whether the good end or a
  // failure came first. nullopt: all ended well, or the store does not answer.
  void conclude(std::function<void(const std::optional<FailureRecord>&)> done);
  // Called when a node is gone: no waiting for its report.
  void miss(int rank);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done);

 private:
  std::string key(std::string_view name) const;
  bool hear(const std::string& text);
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

  bool concluded_ = false;  // the decision: no failure
  bool telling_ = false;    // the store's answer to tell() is pending
  bool all_came_ = false;
  std::vector<int> asked_;
  std::size_t answered_ = 0;
  std::vector<NodeReport> reports_;
  std::function<void(std::vector<NodeReport>)> reports_done_;
  io::Timer report_timer_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous
