#include "job/job_requests.h"

#include "base/text.h"
#include "codec/json.h"
#include "job/follower.h"
#include "job/job_files.h"
#include "job/stop_job.h"
#include "job/supervisor.h"
#include "looks/question.h"
#include "status/event_ring.h"
#include "status/job_socket.h"
#include "status/profile_ask.h"
#include "status/profile_trace.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>

namespace lockstep::job {
namespace {

using Words = std::span<const std::string>;
// In the order of Verb.
constexpr std::array<std::string_view, 14> kVerbs = {
    "start", "follow", "print",  "places", "status",  "report",        "rows",
    "looks", "ranks",  "events", "page",   "profile", "profile-trace", "cancel"};
constexpr std::size_t kMostReport = 64UL << 20;
// An agent answers at once, unless it is stopped (SIGSTOP).
constexpr std::chrono::seconds kLooksLimit{5};

Result<std::int64_t> number(const std::string& text) {
  const auto value = parse_int(text);
  if (!value || *value < 0) return fail(Errc::invalid_input, "not a number: " + printable(text));
  return *value;
}

Result<int> follow_job(Words words, Until until) {
  if (words.size() != 3) return fail(Errc::invalid_input, "follow takes ID OUT ERR");
  LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
  Places from;
  LOCKSTEP_TRY_ASSIGN(from.out, number(words[1]));
  LOCKSTEP_TRY_ASSIGN(from.err, number(words[2]));
  LOCKSTEP_TRY(follow(files, from, until));
  return 0;
}

Result<int> tell_places(Words words) {
  if (words.size() != 2) return fail(Errc::invalid_input, "places takes ID LINES");
  LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
  LOCKSTEP_TRY_ASSIGN(const std::int64_t lines, number(words[1]));
  const Places places = last_lines(files, lines);
  const nlohmann::ordered_json answer{{"out", places.out}, {"err", places.err}};
  std::puts(codec::print_json(answer).c_str());
  return 0;
}

Result<int> tell_status(Words words) {
  std::vector<std::string> ids(words.begin(), words.end());
  if (ids.empty()) ids = JobFiles::ids();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& id : ids) {
    // A job may vanish between listing and opening.
    const auto files = JobFiles::open(id);
    if (!files) continue;
    if (const auto record = files->record()) {
      all.push_back(to_json(*record));
    } else if (files->has_supervisor()) {
      // The record cannot be read just now, but the job lives: to leave it out would say that this
      // host knows no such job.
      JobRecord alive;
      alive.spec.id = id;
      alive.state.stage = Stage::running;
      all.push_back(to_json(alive));
    }
  }
  std::puts(codec::print_json(all).c_str());
  return 0;
}

Result<int> print_report(Words words) {
  if (words.empty() || words.size() > 2) return fail(Errc::invalid_input, "report takes ID [ROW]");
  LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
  std::string name = "report.json";
  if (words.size() == 2) {
    LOCKSTEP_TRY_ASSIGN(const std::int64_t row, number(words[1]));
    name += fmt::format(".rows/{}.json", row);
  }
  LOCKSTEP_TRY_ASSIGN(const std::string report,
                      io::read_file(files.path(name.c_str()), kMostReport));
  LOCKSTEP_TRY(io::write_all(STDOUT_FILENO, report, "the client"));
  return 0;
}

Result<int> print_rows(Words words) {
  if (words.size() != 1) return fail(Errc::invalid_input, "rows takes ID");
  LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
  std::puts(codec::print_json(rows::to_json(files.rows())).c_str());
  return 0;
}

// Waits until the supervisor and all processes below it are gone.
Result<int> cancel_job(Words words) {
  if (words.size() != 1) return fail(Errc::invalid_input, "cancel takes ID");
  LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
  // The supervisor outlives `lockstep run` and then records the end, so its pidfd covers all
  // processes of the job.
  LOCKSTEP_TRY_ASSIGN(const io::Fd supervisor, stop_job(files));
  pollfd wait{supervisor.get(), POLLIN, 0};
  // The wait has no limit: `lockstep run` itself limits the time for its ranks.
  while (supervisor && poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
  return tell_status(words);
}

Result<std::string> looks_target(Words words) {
  if (words.empty() || words.size() > 2)
    return fail(Errc::invalid_input, "looks takes ID [QUESTION]");
  if (words.size() == 1) return std::string("/why");
  return "/why?" + looks::print_question(looks::read_question(words[1]));
}

Result<std::string> ranks_target(Words words) {
  if (words.size() != 1) return fail(Errc::invalid_input, "ranks takes ID");
  return std::string("/ranks");
}

Result<std::string> page_target(Words words) {
  if (words.size() != 2) return fail(Errc::invalid_input, "page takes ID NODE");
  LOCKSTEP_TRY_ASSIGN(const std::int64_t node, number(words[1]));
  return fmt::format("/page?node={}", node);
}

Result<std::int64_t> after_in(Words words) {
  if (words.empty() || words.size() > 2)
    return fail(Errc::invalid_input, "events takes ID [AFTER]");
  if (words.size() == 1) return 0;
  return number(words[1]);
}

Result<std::string> events_target(Words words) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t after, after_in(words));
  return fmt::format("/events?after={}", after);
}

Result<std::vector<std::string>> ask_about_profile(Words words) {
  if (words.size() != 2) return fail(Errc::invalid_input, "profile takes ID QUERY");
  LOCKSTEP_TRY_ASSIGN(const auto query, status::read_profile_query(words[1]));
  return status::ask_about_profile({.job = words[0]}, query, kLooksLimit);
}

// Returns the path of the agents' HTTP server that answers the request.
Result<std::string> target_of(Verb verb, Words words) {
  if (verb == Verb::looks) return looks_target(words);
  if (verb == Verb::ranks) return ranks_target(words);
  if (verb == Verb::page) return page_target(words);
  if (verb == Verb::events) return events_target(words);
  return fail(Errc::invalid_input, "no request to agents");
}

// The agents make the JSON, so it is passed on as it is.
Result<std::vector<std::string>> ask_agents(Verb verb, Words words) {
  if (verb == Verb::profile) return ask_about_profile(words);
  LOCKSTEP_TRY_ASSIGN(const std::string target, target_of(verb, words));
  const auto named = status::read_agents_word(words[0]);
  return status::ask_agents({.job = named.job}, target, kLooksLimit, {}, named.variable);
}

std::string list_of(const std::vector<std::string>& answers) {
  return "[" + join(answers, ",") + "]";
}

// The answer about a page has the page's token, so it goes to stdout only.
Result<int> tell_answers(Verb verb, Words words) {
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_agents(verb, words));
  std::puts(list_of(answers).c_str());
  return 0;
}

// Prints a finished trace in the folder that an agent has named to the client.
Result<int> send_trace(Words words) {
  if (words.size() != 4)
    return fail(Errc::invalid_input, "profile-trace takes ID FOLDER PROFILE RANK");
  LOCKSTEP_TRY_ASSIGN(const std::int64_t id, number(words[2]));
  LOCKSTEP_TRY_ASSIGN(const std::int64_t rank, number(words[3]));
  const auto trace = status::finished_trace(words[1], id, static_cast<int>(rank));
  if (!trace) return fail(Errc::not_found, "the trace is no longer there");
  LOCKSTEP_TRY(status::read_trace(*trace, [](std::string_view piece) {
    return io::write_all(STDOUT_FILENO, piece, "the client");
  }));
  return 0;
}

Result<int> tell_events(Words words) {
  LOCKSTEP_TRY_ASSIGN(auto answers, ask_agents(Verb::events, words));
  if (answers.empty()) {
    LOCKSTEP_TRY_ASSIGN(const std::int64_t after, after_in(words));
    LOCKSTEP_TRY_ASSIGN(const JobFiles files, JobFiles::open(words[0]));
    if (const auto report = io::read_file(files.path("report.json"), kMostReport))
      if (auto answer = status::answer_of_report(*report, after))
        answers.push_back(std::move(*answer));
  }
  std::puts(list_of(answers).c_str());
  return 0;
}

}  // namespace

std::optional<Verb> verb_of(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const auto* const at = std::find(kVerbs.begin(), kVerbs.end(), words.front());
  if (at == kVerbs.end()) return std::nullopt;
  return static_cast<Verb>(at - kVerbs.begin());
}

Result<int> serve_request(const std::vector<std::string>& words) {
  const auto verb = verb_of(words);
  if (!verb)
    return fail(Errc::invalid_input,
                "host-job has no verb '" + printable(words.empty() ? "" : words.front()) + "'");
  const Words rest = Words(words).subspan(1);
  switch (*verb) {
    case Verb::start:
      return start_supervisor();
    case Verb::follow:
      return follow_job(rest, Until::end_of_job);
    case Verb::print:
      return follow_job(rest, Until::now);
    case Verb::places:
      return tell_places(rest);
    case Verb::status:
      return tell_status(rest);
    case Verb::report:
      return print_report(rest);
    case Verb::rows:
      return print_rows(rest);
    case Verb::events:
      return tell_events(rest);
    case Verb::looks:
    case Verb::ranks:
    case Verb::page:
    case Verb::profile:
      return tell_answers(*verb, rest);
    case Verb::profile_trace:
      return send_trace(rest);
    case Verb::cancel:
      break;
  }
  return cancel_job(rest);
}

Result<std::string> ask_agents_here(const std::vector<std::string>& words) {
  const auto verb = verb_of(words);
  if (!verb) return fail(Errc::invalid_input, "a request is looks, ranks, events, page or profile");
  LOCKSTEP_TRY_ASSIGN(const auto answers, ask_agents(*verb, Words(words).subspan(1)));
  return list_of(answers);
}

}  // namespace lockstep::job
