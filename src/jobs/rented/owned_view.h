// Shows a job whose rental another host owns (`run --on-demand --guard HOST`) on this terminal,
// over broken links too. jobs/rented/owned_view_core.h decides.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "jobs/rented/owned_view_core.h"

#include <functional>
#include <string>

namespace lockstep::jobs::rented {

struct OwnedViewRequest {
  hosts::HostPlace place;
  std::string rental;
  std::string how;  // HOW of `host-rental follow` (owner_talk.h)
  OwnedViewCore::Settings settings;
  // Tells the user a line.
  std::function<void(const std::string& text)> say;
};

// Prints the job's output as it is, and other words of the host in printable form. Returns when the
// view on the host has ended, a signal has ended the view here, or the host is given up. Fails only
// if this process cannot begin. The signals of proc::handled_signals() must be blocked.
Result<OwnedViewEnd> view_at_owner(const OwnedViewRequest& request,
                                   const hosts::OpenLink& open_link = hosts::host_links());

}  // namespace lockstep::jobs::rented
