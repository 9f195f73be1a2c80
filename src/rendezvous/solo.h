// The rendezvous of a job with one node: all ranks are here.
#pragma once

#include "io/loop.h"
#include "rendezvous/backend.h"

namespace lockstep::rendezvous {

class Solo : public Backend {
 public:
  // addr: the address of the workers' store.
  Solo(io::Loop& loop, NodeOffer offer, std::string addr, OfferStore offer_store);

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string waiting_for() const override { return {}; }

 private:
  NodeOffer offer_;
  std::string addr_;
  OfferStore offer_store_;
  std::int64_t rounds_ = 0;
  int restarts_ = 0;
  io::Timer turn_;  // serves one request at a time
};

}  // namespace lockstep::rendezvous
