// Serves the status page of a job: the page, the state of the job at this moment, and the history
// behind the charts. A viewer needs the token, and can change nothing.
#pragma once

#include "http/server.h"
#include "io/loop.h"
#include "page/gate.h"
#include "page/history.h"
#include "page/page_state.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::page {

// Where the page gets what it shows. Called on the loop's thread; must not block.
struct PageSources {
  // Called once a second, and for each answer. looked_at: a viewer is there or asks.
  std::function<looks::NodeRows(bool looked_at)> rows;
  std::function<PageState()> state;  // without rows; only while somebody looks
  std::function<http::Response(const http::Request&)> why;  // /why, /why?rank=R
  std::function<http::Response(const http::Request&)> metrics;
  // /events?after=N, as status::EventRing::answer() prints them. May be empty: no events are shown.
  std::function<http::Response(const http::Request&)> events = {};
};

struct PagePlace {
  std::string host = "localhost";  // see io::open_listener()
  std::uint16_t port = 0;
  std::string shown = "127.0.0.1";  // the host in address()
  std::string token;
  std::vector<std::string> names = {};  // see GateRules
};

class PageServer {
 public:
  static constexpr std::size_t kMostViewers = 64;

  // Fails with already_exists if the port is taken.
  static Result<std::unique_ptr<PageServer>> open(io::Loop& loop, const PagePlace& place,
                                                  PageSources sources);

  // Returns the address for the user, with the token.
  std::string address() const;
  const PagePlace& place() const { return place_; }  // with the port that the kernel picked
  std::size_t viewers() const { return server_->viewers(); }
  // The job has ended. Tells the viewers, who cannot ask any more once this process has ended.
  void show_end(const std::string& words);

 private:
  PageServer(io::Loop& loop, const PagePlace& place, PageSources sources);
  void tick();
  http::Handlers handlers();
  http::Handler guarded(http::Handler handler) const;
  http::Response history(const http::Request& request) const;
  std::string state_now(looks::NodeRows rows) const;

  PagePlace place_;
  PageSources sources_;
  std::optional<Gate> gate_;
  std::string html_;
  std::string policy_;
  History history_;
  std::optional<std::string> ended_;
  io::Timer timer_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace lockstep::page
