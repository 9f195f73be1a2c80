// Decides the steps of starting a job on all of its hosts, or on none: prepare it everywhere, find
// addresses at which the hosts reach each other, let it go. Pure: the driver in job_start.cc
// opens the links, carries the frames, and hands in every frame, loss and signal.
#pragma once

#include "base/line_cutter.h"
#include "codec/json.h"
#include "jobs/on_hosts/job_start.h"
#include "jobs/on_hosts/meeting_places.h"
#include "link/channel.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_hosts {

class StartCourse {
 public:
  struct Events {
    std::function<void(std::size_t node, const link::Frame&)> send;
    std::function<void(const std::string&)> warn;  // a remark of a host for the user
  };
  // The request must outlive the course. Sends nothing before begin().
  StartCourse(const JobRequest& request, Events events);

  void begin();
  void take(std::size_t node, const link::Frame& frame) { hosts_[node].channel->take(frame); }
  // The link of a host is lost. why: includes the host's name.
  void lost(const std::string& why);
  void on_signal(int number);

  // Returns whether the job has started everywhere, or never will.
  bool is_over() const { return phase_ == Phase::over; }
  // Returns whether the course waits for this host.
  bool waits_for(std::size_t node) const { return !hosts_[node].answered; }
  // Returns the result. Valid once the course is over.
  Result<StartedJob> result() const;
  // Returns true if some hosts may have started the job and others not.
  bool is_half_begun() const { return error_ && told_to_go_; }

 private:
  // All hosts go through these phases in step.
  enum class Phase { preparing, trying, closing, going, over };
  struct Host {
    std::unique_ptr<link::Channel> channel;
    LineCutter output;
    bool answered = false;
    std::string machine = {};  // its processor, as `uname -m` there prints it
    std::string unable = {};   // why the host cannot start the job's container; empty: able
    TriedHost tried = {};
    std::string secret = {};  // by which other hosts recognize this one
  };

  void add_host(std::size_t node);
  void on_output(std::size_t node, link::Stream stream, std::string_view bytes);
  void on_end(std::size_t node, const link::ChannelEnd& end);
  void on_answer(std::size_t node, const nlohmann::json& answer);
  bool has_trial() const { return request_.needs_endpoint && hosts_.size() > 1; }
  bool take_prepared(std::size_t node, const nlohmann::json& facts);
  void take_reached(std::size_t node, const nlohmann::json& reached);
  void say(std::size_t node, const nlohmann::ordered_json& request);
  Status check_machines() const;
  Status check_containers() const;
  void next_phase();
  void try_addresses();
  void end_trial();
  void go();
  void fail_with(Error error);

  const JobRequest& request_;
  Events events_;
  Phase phase_ = Phase::preparing;
  std::vector<Host> hosts_;
  std::size_t listed_ = 0;  // so many hosts from node 0 on may be a meeting place
  std::vector<std::string> let_go_;
  StartedJob started_;
  std::optional<Error> error_;
  bool told_to_go_ = false;
};

}  // namespace lockstep::jobs::on_hosts
