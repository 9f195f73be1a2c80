// The status page and the metrics of this node, where the user has asked for them (--status-page,
// --metrics, `lockstep page`).
#pragma once

#include "agent/failure_report.h"
#include "agent/job_end.h"
#include "agent/job_history.h"
#include "agent/job_view.h"
#include "agent/node.h"
#include "agent/sight.h"
#include "http/server.h"
#include "io/loop.h"
#include "page/page_server.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::agent {

class StatusPage {
 public:
  struct Owners {
    io::Loop& loop;
    const Node& node;
    const JobHistory& history;
    Sight& sight;
    std::function<JobView()> view;
  };

  explicit StatusPage(Owners owners) : owners_(std::move(owners)) {}

  // Opens what is asked for, and prints the addresses. A port that cannot be opened is only logged:
  // the job does not depend on being watched.
  void open();
  // Answers "/page?node=N" of a command of this user: where the page of the node with group rank N
  // is. If this node is the one, and the job was started without a page, opens it on loopback. It
  // stays until the job ends.
  http::Response answer(const http::Request& request);
  // Tells the viewers how the job has ended.
  void show_end(const JobEnd& end, const std::vector<WorkerFailure>& failures);

  // last: returns the number of the newest event. answer: answers /events?after=N. Call before
  // open(). Without a call the page shows no events.
  struct Events {
    std::function<std::int64_t()> last;
    std::function<http::Response(const http::Request&)> answer;
  };
  void show_events(Events events) { events_ = std::move(events); }

 private:
  void make_token();
  Status open_page(const launch::ServePlace& at);
  void open_metrics(const launch::ServePlace& at);
  page::PageState state() const;
  http::Response metrics(const http::Request& request) const;

  Owners owners_;
  Events events_;
  std::string token_;
  std::unique_ptr<page::PageServer> page_;
  std::unique_ptr<http::Server> metrics_;
};

}  // namespace lockstep::agent
