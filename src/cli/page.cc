// lockstep page: leads a browser on this machine to the status page of a job.
#include "base/text.h"
#include "cli/one_job.h"
#include "cli/page_options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "hosts/link_forward.h"
#include "hosts/port_forward.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::int64_t kMostNode = 1 << 24;
constexpr std::int64_t kMostPort = 65535;

Status check(const PageOptions& options) {
  if (options.node && (*options.node < 0 || *options.node > kMostNode))
    return fail(Errc::invalid_input, "--node must be the number of a node of the job, from 0");
  if (options.port < 0 || options.port > kMostPort)
    return fail(Errc::invalid_input, "--port must be a port from 1 to 65535, or 0 for a free one");
  return {};
}

bool serves(const jobs::PageThere& each) {
  return each.page.serves();
}

// Returns the place of the node's page. Without a node: that of node 0, or, if only another node of
// the job runs on this machine, of that node. Errors: unavailable, not_found.
Result<jobs::PageThere> find_page(jobs::Job& job, std::optional<std::int64_t> wanted) {
  const std::string& id = job.record().id;
  int node = static_cast<int>(wanted.value_or(0));
  LOCKSTEP_TRY_ASSIGN(auto found, job.page(node));
  if (!wanted && found.size() == 1 && found[0].is_here() && found[0].page.group_rank != 0) {
    node = found[0].page.group_rank;
    LOCKSTEP_TRY_ASSIGN(found, job.page(node));
  }
  const auto at = std::find_if(found.begin(), found.end(), serves);
  if (at != found.end()) return std::move(*at);
  for (const jobs::PageThere& each : found)
    if (!each.page.refusal.empty())
      return fail(Errc::unavailable, fmt::format("{} cannot open the status page: {}",
                                                 each.page.node, each.page.refusal));
  if (!found.empty())
    return fail(Errc::not_found, fmt::format("no node {} of {} answers", node, id),
                "the nodes of a job count from 0");
  return fail(Errc::unavailable, fmt::format("no agent of {} answers with a status page", id),
              fmt::format("lockstep why {} says whether the job runs", id));
}

void print_address(const jobs::Job& job, const jobs::PageThere& there, std::string_view host,
                   int port, bool json) {
  const std::string address = page::page_address(host, port, there.page.token);
  std::puts(json ? codec::print_json(nlohmann::ordered_json{{"id", job.record().id},
                                                            {"node", there.page.node},
                                                            {"address", address}})
                       .c_str()
                 : address.c_str());
  // A program waits for this line, and a pipe is buffered.
  std::fflush(stdout);
}

// The job's end closes the page, which a browser then asks for in vain. A lost connection may come
// back.
bool is_over(const Error& trouble) {
  return trouble.code == Errc::not_found || trouble.code == Errc::denied;
}

// Keeps the way to a page: over ssh, or over a link.
struct Way {
  std::unique_ptr<hosts::PortForward> over_ssh = {};
  std::unique_ptr<hosts::LinkForward> over_link = {};

  int port() const { return over_ssh ? over_ssh->specs().front().local : over_link->port(); }
};

Result<Way> open_way(io::Loop& loop, const jobs::PageThere& there, std::int64_t port,
                     hosts::PortForward::Events events) {
  const hosts::ForwardSpec spec{
      .local = static_cast<int>(port), .host = there.page.host, .port = there.page.port};
  Way way;
  if (there.link) {
    const hosts::Link::Settings settings{.place = {.name = there.page.node, .target = {}},
                                         .command = there.link};
    LOCKSTEP_TRY_ASSIGN(way.over_link,
                        hosts::LinkForward::open(loop, settings, spec, std::move(events)));
  } else {
    LOCKSTEP_TRY_ASSIGN(way.over_ssh,
                        hosts::PortForward::open(loop, *there.host, {spec}, std::move(events)));
  }
  return way;
}

// Forwards a port of this machine to the page until a signal comes.
Result<ExitCode> keep_forward(const jobs::Job& job, const jobs::PageThere& there,
                              const PageOptions& options) {
  io::Loop loop;
  ExitCode code = ExitCode::ok;
  std::optional<Error> over;
  LOCKSTEP_TRY_ASSIGN(const auto signals, proc::SignalWatch::open(loop, [&](int number) {
                        if (!proc::is_stop_signal(number)) return;
                        code = stopped_by(number);
                        loop.stop();
                      }));
  const auto end = [&](Error why) {
    over = std::move(why);
    loop.stop();
  };
  Way way;
  bool shown = false;
  const auto gone = [](const Error& why) { return Error(why).within("the status page is gone"); };
  LOCKSTEP_TRY_ASSIGN(
      way, open_way(loop, there, options.port,
                    {.ready =
                         [&] {
                           shown = true;
                           print_address(job, there, "127.0.0.1", way.port(), options.json);
                         },
                     .trouble =
                         [&](const Error& why) {
                           if (is_over(why)) return end(gone(why));
                           print_error(page_table().program, why);
                         },
                     .failed = [&](const Error& why) { end(shown ? gone(why) : why); }}));
  loop.run();
  if (over) return Failure(std::move(*over));
  return code;
}

Result<ExitCode> show_page(const Call& call) {
  PageOptions options;
  fill(page_table(), call.parsed, options);
  LOCKSTEP_TRY(check(options));
  LOCKSTEP_TRY_ASSIGN(const NamedJob named, name_job(call, "page"));
  LOCKSTEP_TRY_ASSIGN(const auto job, open_named(named));
  LOCKSTEP_TRY_ASSIGN(const auto there, find_page(*job, options.node));
  if (!there.is_here()) return keep_forward(*job, there, options);
  if (options.port != 0)
    return fail(Errc::invalid_input, "--port is for jobs on other machines, and this page is here",
                fmt::format("lockstep run --status-page={} chooses the port", options.port));
  print_address(*job, there, there.page.host, there.page.port, options.json);
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kPage{.name = "page",
                                        .summary = "lead a browser to a job's status page",
                                        .table = page_table,
                                        .run = show_page,
                                        .signals = Signals::blocked};

}  // namespace lockstep::cli
