// On a host that watches a job for a command elsewhere (`--guard HOST`): follows it to its end, and
// where its command is not heard then, brings its outputs here and gives the machines back. It
// begins no job and rents nothing: this host has neither the job's words nor its files.
#pragma once

#include "rent/on_demand.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// One job of another machine's user, over all machines that its command rents for it.
class WatchCourse {
 public:
  WatchCourse(rent::OnDemand& world, cloud::Rental rental, cloud::RentedJob job)
      : world_(world), rental_(std::move(rental)), job_(std::move(job)) {}

  // The claim to the job is held. Returns where nothing is left to do, or by a signal.
  Status run();

 private:
  enum class Seen {
    nothing,  // it has not begun, or its machines do not answer
    ended,
    gone,  // its machines are, and what became of it is not known
    left,  // by a signal
  };

  void tell(const std::string& text) const;
  bool refresh();
  Status pause(std::int64_t ms);
  Result<std::vector<hosts::HostPlace>> places() const;
  bool machines_gone() const;
  Result<Seen> follow();
  bool is_hurried(const std::vector<hosts::HostPlace>& places);
  Result<bool> command_is_gone();
  Status change(const std::function<bool(cloud::RentedJob&)>& change);
  Status bring_path(const hosts::HostPlace& place, const std::string& path);
  Status bring();
  Status bring_if_hurried();
  Status stand_in();
  Status conclude(int code, const std::string& note);

  rent::OnDemand& world_;
  cloud::Rental rental_;  // as it was last known
  cloud::RentedJob job_;
  bool closed_ = false;      // the rental is
  int attempt_ = 0;          // the newest as the job was followed: those after it are its command's
  std::optional<int> code_;  // of the job; none: no host has told it
  std::int64_t ended_ms_ = 0;  // when that was seen
  bool noticed_ = false;       // its provider takes a machine away
};

}  // namespace lockstep::cli
