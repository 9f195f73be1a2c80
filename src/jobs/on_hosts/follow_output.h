// What a follower prints of a job: where the output begins, the lines of several hosts, and their
// form for people or programs.
#pragma once

#include "hosts/folded_hosts.h"
#include "hosts/host_output.h"
#include "hosts/log_lines.h"
#include "io/loop.h"
#include "io/own_stream.h"
#include "jobs/on_hosts/job_follow.h"
#include "link/frames.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_hosts {

// Byte offsets in a host's two output files.
struct OutputPlaces {
  std::int64_t out = 0;
  std::int64_t err = 0;
};

// Returns the offsets at which each host's output begins for this request. Asks the hosts if only
// they know, as for the last lines.
Result<std::vector<OutputPlaces>> first_places(const FollowRequest& request,
                                               const hosts::RunCommand& run);

// Merges the output of all hosts onto this process's stdout and stderr.
class FollowOutput {
 public:
  // The request must outlive this object.
  FollowOutput(io::Loop& loop, const FollowRequest& request, io::OwnStream out, io::OwnStream err);

  // Prints bytes of one host. printed: called after each write with its number of bytes.
  void put(std::size_t node, link::Stream stream, std::string_view bytes,
           std::function<void(std::size_t)> printed);
  // Prints a host's last line if it has no line end.
  void end(std::size_t node);
  // Like end() for all hosts. Calls fn once everything is printed.
  void finish(std::function<void()> fn);

 private:
  struct Output {
    hosts::LineForm form;
    hosts::OutputLines lines = {};  // only if the form prints by line
  };
  struct Node {
    Output out;
    Output err;
  };
  Output output(const std::string& node, const char* stream) const;
  hosts::HostOutput& sink_of(link::Stream stream);

  const FollowRequest& request_;
  std::vector<Node> nodes_;
  hosts::HostOutput out_;
  hosts::HostOutput err_;
  // In front of out_ and err_. Both are folded, since progress bars are drawn on stderr.
  std::optional<hosts::FoldedHosts> folded_out_;
  std::optional<hosts::FoldedHosts> folded_err_;
};

}  // namespace lockstep::jobs::on_hosts
