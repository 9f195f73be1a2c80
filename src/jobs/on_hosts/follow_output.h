// What a follower prints of a job: where its output begins, the lines of several hosts, and their
// form for people or programs.
#pragma once

#include "hosts/folded_hosts.h"
#include "hosts/host_output.h"
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

// Bytes in the two outputs that a host keeps.
struct OutputPlaces {
  std::int64_t out = 0;
  std::int64_t err = 0;
};

// Asks the hosts where the output that is wanted begins, as far as only they know.
Result<std::vector<OutputPlaces>> first_places(const FollowRequest& request);

class FollowOutput {
 public:
  // The request must outlive it.
  FollowOutput(io::Loop& loop, const FollowRequest& request, io::OwnStream out, io::OwnStream err);

  // printed: called with numbers of bytes as they are printed.
  void put(std::size_t node, link::Stream stream, std::string_view bytes,
           std::function<void(std::size_t)> printed);
  // Prints what a host has said without an end of line.
  void end(std::size_t node);
  // The same for all hosts; calls fn once everything is printed.
  void finish(std::function<void()> fn);

 private:
  struct Prefixes {
    std::string out;
    std::string err;
  };
  hosts::HostOutput::LineText line_text() const;
  Prefixes prefixes_of(const std::string& name) const;
  hosts::HostOutput& output_of(link::Stream stream);

  const FollowRequest& request_;
  std::vector<Prefixes> prefixes_;  // of each node
  hosts::HostOutput out_;
  hosts::HostOutput err_;
  // In front of out_ and err_: progress bars are drawn on stderr.
  std::optional<hosts::FoldedHosts> folded_out_;
  std::optional<hosts::FoldedHosts> folded_err_;
};

}  // namespace lockstep::jobs::on_hosts
