#include "agent/status_page.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/sha256.h"
#include "codec/url.h"
#include "host/port_owner.h"
#include "page/page_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {

constexpr std::size_t kTokenBytes = 16;

// The name for the address that is printed. Never "localhost", which a browser may look for on ::1
// first, where another user may listen.
std::string shown_host(const std::string& host, const Node& node) {
  if (host == "localhost") return "127.0.0.1";
  return host.empty() || host == "0.0.0.0" || host == "::" ? node.host_name : host;
}

// The address that a process of this machine reaches a page at.
std::string reached_at(const std::string& host) {
  if (host == "::") return "::1";
  return host.empty() || host == "localhost" || host == "0.0.0.0" ? "127.0.0.1" : host;
}

// The node that a request asks for: "node=2". Without one, the first.
int wanted_node(std::string_view query) {
  if (!query.starts_with("node=")) return 0;
  return static_cast<int>(parse_int(query.substr(5)).value_or(-1));
}

void say_closed(std::string_view what, Error error, std::uint16_t port) {
  host::name_port_holder(error, port);
  log::warning("no {} is served: {}", what, error.message);
}

page::PageAttempt shown_attempt(const Attempt& attempt, std::int64_t number) {
  return {.number = number,
          .start_ms = attempt.start.at_ms,
          .end_ms = attempt.end_ms,
          .end = std::string(attempt_end_word(attempt.end)),
          .why = printable(attempt.why, 500),
          .others = attempt.others,
          .nodes = attempt.start.nodes,
          .world = attempt.start.world_size};
}

}  // namespace

void StatusPage::open() {
  const launch::PageConfig& config = owners_.node.config.page;
  if (!config.status_page && !config.metrics) return;
  make_token();
  if (config.status_page) {
    if (Status opened = open_page(*config.status_page); opened)
      log::warning("status page: {}", page_->address());
    else
      say_closed("status page", std::move(opened).error(), config.status_page->port);
  }
  if (config.metrics) open_metrics(*config.metrics);
}

// A token of the user's own also guards a page that a command asks for.
void StatusPage::make_token() {
  if (token_.empty())
    token_ = owners_.node.config.page.token.value_or(codec::hex(random_key(kTokenBytes)));
}

http::Response StatusPage::answer(const http::Request& request) {
  page::PageAnswer answer{.node = owners_.node.name, .group_rank = owners_.view().round.group_rank};
  // A node that has joined no round yet has no number. The only node of a job is node 0.
  const bool numbered = owners_.history.attempts_total() > 0 || owners_.node.config.alone();
  if (numbered && wanted_node(request.query) == answer.group_rank) {
    make_token();
    if (!page_)
      if (const Status opened = open_page({.host = "localhost", .port = 0}); !opened)
        answer.refusal = printable(opened.error().message, 300);
    if (page_) {
      answer.host = reached_at(page_->place().host);
      answer.port = page_->place().port;
      answer.token = token_;
    }
  }
  return {200, "application/json", page::page_answer_json(answer)};
}

Status StatusPage::open_page(const launch::ServePlace& at) {
  page::PageSources sources{
      // A page that was asked for at the start shows the GPUs of all hours, any other page those of
      // the minutes in which somebody looked.
      .rows =
          [this](bool looked_at) {
            return owners_.sight.rows_and_gpus(looked_at ||
                                               owners_.node.config.page.status_page.has_value());
          },
      .state = [this] { return state(); },
      .why = [this](const http::Request& request) { return owners_.sight.answer(request); },
      .metrics = [this](const http::Request& request) { return metrics(request); },
      .events = events_.answer};
  LOCKSTEP_TRY_ASSIGN(page_,
                      page::PageServer::open(owners_.loop,
                                             {.host = at.host,
                                              .port = at.port,
                                              .shown = shown_host(at.host, owners_.node),
                                              .token = token_,
                                              .names = {owners_.node.host_name, owners_.node.name}},
                                             std::move(sources)));
  return {};
}

void StatusPage::open_metrics(const launch::ServePlace& at) {
  // Every user of this machine may see what its processes use, so loopback needs no token.
  const bool open = page::is_loopback(at.host);
  const page::Gate gate({.token = open ? "" : token_,
                         .bound = at.host,
                         .names = {owners_.node.host_name, owners_.node.name}});
  http::Handlers handlers;
  handlers["/metrics"] = [this, gate](const http::Request& request) {
    auto refused = gate.turn_away(request);
    return refused ? std::move(*refused) : metrics(request);
  };
  auto server = http::Server::listen(owners_.loop, at.host, at.port, std::move(handlers));
  if (!server) return say_closed("/metrics", std::move(server).error(), at.port);
  metrics_ = std::move(*server);
  log::warning("metrics: http://{}/metrics{}",
               codec::host_text(shown_host(at.host, owners_.node), metrics_->port(), false),
               open ? "" : fmt::format(" (Authorization: Bearer {})", token_));
}

void StatusPage::show_end(const JobEnd& end, const std::vector<WorkerFailure>& failures) {
  if (!page_) return;
  std::string words = outcome_word(end.outcome);
  const auto failure = std::find_if(failures.begin(), failures.end(),
                                    [](const WorkerFailure& each) { return !each.after_stop; });
  const std::string why = failure == failures.end() ? end.why_stopped : failure_line(*failure);
  if (!why.empty() && end.outcome != Outcome::succeeded) words += ": " + why;
  page_->show_end(words);
}

page::PageState StatusPage::state() const {
  const JobHistory& history = owners_.history;
  const launch::LaunchConfig& config = owners_.node.config;
  const JobView view = owners_.view();
  page::PageState state{.start_ms = history.start_ms(),
                        .version = LOCKSTEP_VERSION,
                        .run_id = printable(config.run_id),
                        .restarts = config.max_restarts - view.remaining_restarts,
                        .max_restarts = config.max_restarts,
                        .attempts_total = history.attempts_total(),
                        .events = events_.last ? events_.last() : 0,
                        .nodes = owners_.sight.nodes(),
                        .goodput = view.goodput};
  const auto& attempts = history.attempts();
  if (!attempts.empty()) state.logs = printable(attempts.back().log_dir, 500);
  const std::size_t shown = std::min(attempts.size(), page::kMostShownAttempts);
  for (std::size_t i = attempts.size() - shown; i < attempts.size(); ++i)
    state.attempts.push_back(shown_attempt(
        attempts[i],
        history.attempts_total() - static_cast<std::int64_t>(attempts.size() - 1 - i)));
  return state;
}

http::Response StatusPage::metrics(const http::Request& request) const {
  return metrics_answer(owners_.view(), owners_.sight.rows(), request);
}

}  // namespace lockstep::agent
