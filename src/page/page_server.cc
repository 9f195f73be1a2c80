#include "page/page_server.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "page/page_answer.h"
#include "page/page_html.h"

#include <chrono>
#include <utility>

namespace lockstep::page {
namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr std::chrono::seconds kPatience{10};  // for a client that reads nothing
constexpr std::int64_t kDay = 86'400'000;

// Returns the number behind "NAME=" if the query is that and nothing else.
std::int64_t number_in(std::string_view query, std::string_view name, std::int64_t otherwise) {
  if (!query.starts_with(name) || !query.substr(name.size()).starts_with('=')) return otherwise;
  const auto number = parse_int(query.substr(name.size() + 1));
  return number && *number >= 0 ? *number : otherwise;
}

http::Response json(std::string text) {
  return {.content_type = "application/json", .body = std::move(text)};
}

}  // namespace

Result<std::unique_ptr<PageServer>> PageServer::open(io::Loop& loop, const PagePlace& place,
                                                     PageSources sources) {
  std::unique_ptr<PageServer> page(new PageServer(loop, place, std::move(sources)));
  LOCKSTEP_TRY_ASSIGN(page->server_,
                      http::Server::listen(loop, place.host, place.port, page->handlers(),
                                           {.timeout = kPatience, .viewers = kMostViewers}));
  page->place_.port = page->server_->port();
  page->gate_.emplace(GateRules{.token = place.token, .bound = place.host, .names = place.names});
  page->tick();
  return page;
}

PageServer::PageServer(io::Loop& loop, const PagePlace& place, PageSources sources)
    : place_(place),
      sources_(std::move(sources)),
      html_(page_html()),
      policy_(page_policy()),
      timer_(loop) {}

std::string PageServer::address() const {
  return page_address(place_.shown, place_.port, place_.token);
}

void PageServer::show_end(const std::string& words) {
  ended_ = words;
  tick();
}

// The history needs a look each second. All else is made only while a browser shows the page.
void PageServer::tick() {
  timer_.start(kPeriod, [this] { tick(); });
  looks::NodeRows rows = sources_.rows(server_->viewers() > 0);
  history_.add(sample_of(rows, unix_ms()));
  if (server_->viewers() == 0) return;
  server_->send_to_viewers(event_frame("state", state_now(std::move(rows))));
}

std::string PageServer::state_now(looks::NodeRows rows) const {
  PageState state = sources_.state();
  state.now_ms = unix_ms();
  state.ended = ended_;
  state.rows = std::move(rows);
  return state_json(state);
}

// Every answer goes through the gate and carries the headers that keep a browser from treating it
// as anything else.
http::Handler PageServer::guarded(http::Handler handler) const {
  return [this, handler = std::move(handler)](const http::Request& request) {
    auto refused = gate_->turn_away(request);
    http::Response response = refused ? std::move(*refused) : handler(request);
    response.fields.emplace_back("X-Content-Type-Options", "nosniff");
    response.fields.emplace_back("Content-Security-Policy", policy_);
    response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
    response.fields.emplace_back("Referrer-Policy", "no-referrer");
    return response;
  };
}

http::Handlers PageServer::handlers() {
  http::Handlers handlers;
  handlers["/"] = guarded([this](const http::Request&) {
    return http::Response{.content_type = "text/html; charset=utf-8", .body = html_};
  });
  handlers["/live"] = guarded([this](const http::Request&) {
    return http::Response{
        .content_type = "text/event-stream",
        // The browser connects again after two seconds. The first state comes at once, or the page
        // would stay empty until the next tick.
        .body = "retry: 2000\n\n" + event_frame("state", state_now(sources_.rows(true))),
        .goes_on = true};
  });
  handlers["/state"] =
      guarded([this](const http::Request&) { return json(state_now(sources_.rows(true))); });
  handlers["/history"] = guarded([this](const http::Request& request) { return history(request); });
  handlers["/events"] = guarded([this](const http::Request& request) {
    return sources_.events ? sources_.events(request) : json(R"({"next":0,"events":[]})");
  });
  handlers["/why"] = guarded(sources_.why);
  handlers["/metrics"] = guarded(sources_.metrics);
  return handlers;
}

// "span=SECONDS": the span that the charts show.
http::Response PageServer::history(const http::Request& request) const {
  const std::int64_t seconds = std::min(number_in(request.query, "span", 600), kDay / 1000);
  return json(series_json(history_.series_for(seconds * 1000)));
}

}  // namespace lockstep::page
