// This client's vote in the rendezvous of a job of two hosts (rendezvous/hub/remote_vote.h). The
// client dials the hub over links that it holds, so no host needs a way to this machine.
#pragma once

#include "codec/rdzv_endpoint.h"
#include "hosts/link_forward.h"
#include "io/loop.h"
#include "jobs/on_hosts/job_start.h"
#include "rendezvous/hub/remote_vote.h"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct VotePlan {
  std::vector<codec::RdzvEndpoint> hubs;  // the place of the hub on each of the two hosts
  std::string run_id;
  std::string token;
};

// Returns the plan for a started job; nullopt: this client has no vote. own: addresses of this
// machine. A vote on the machine of a host would be lost with that host.
std::optional<VotePlan> vote_plan(const JobRequest& request, const StartedJob& started,
                                  const std::string& run_id, const std::vector<std::string>& own);

class ClientVote {
 public:
  ClientVote(io::Loop& loop, VotePlan plan, std::vector<hosts::HostPlace> places,
             hosts::OpenLink open_link);

  // A link to the host works, or is lost.
  void reach(std::size_t host);
  void lose(std::size_t host) { ways_.at(host) = {}; }

 private:
  struct Way {
    std::unique_ptr<hosts::LinkForward> forward = {};
    bool ready = false;
  };

  io::Loop& loop_;
  VotePlan plan_;
  std::vector<hosts::HostPlace> places_;
  hosts::OpenLink open_link_;
  std::array<Way, 2> ways_;
  rendezvous::hub::RemoteVote vote_;
};

}  // namespace lockstep::jobs::on_hosts
