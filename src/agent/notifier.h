// Tells a webhook and a program about the job (--notify, --notify-exec). Each notice is a child
// process with the JSON on its standard input, so the loop never waits for a network or a program.
// Of what goes wrong, the user hears once.
#pragma once

#include "agent/node.h"
#include "agent/notice.h"
#include "io/loop.h"
#include "proc/containment.h"
#include "proc/spawn.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

// The environment variable that names the webhook to `lockstep notify-post`.
inline constexpr std::string_view kWebhookVariable = "LOCKSTEP_NOTIFY_URL";

class Notifier {
 public:
  // reaped: called after a child was reaped, since the kernel reports one ended child at a time.
  Notifier(io::Loop& loop, const Node& node, proc::Containment& containment,
           std::function<void()> reaped);
  ~Notifier();

  // Queues the notice. Notices reach their receiver one after the other.
  void tell(const Notice& notice);
  // Returns whether a notice is under way or waits.
  bool busy() const;
  // Gives up all notices.
  void close();

 private:
  // Sends to one receiver.
  class Courier;

  std::vector<std::unique_ptr<Courier>> couriers_;
};

}  // namespace lockstep::agent
