#include "jobs/rented/owned_job.h"

#include "base/text.h"
#include "cloud/journal.h"
#include "io/own_folders.h"
#include "jobs/agent_answers.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>

namespace lockstep::jobs::rented {
namespace {

constexpr std::string_view kNotBegun = "null";  // the answer to "why"
constexpr int kStopped = 128;
constexpr int kWrongUse = 2;
constexpr std::size_t kMostName = 63;

Failure only_there(const cloud::RentedJob& course, std::string_view what,
                   std::string_view command) {
  const std::string host = printable(course.host);
  return fail(Errc::invalid_input,
              fmt::format("only {}, which rents the machines of {}, reaches {}", host,
                          printable(course.cluster), what),
              fmt::format("on {}: lockstep {} {}", host, command, printable(course.cluster)));
}

// Returns the signal of a command that the user has stopped: 128 + signal is also a job's code.
int signal_of(int code) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    if (code == kStopped + signal) return signal;
  return 0;
}

JobStatus status_of_end(int code, bool was_canceled) {
  // A job may end successfully by itself while the cancellation is on its way.
  const bool canceled = was_canceled && code != 0;
  return {.state = ended_state(code, was_canceled),
          .code = code,
          .canceled = canceled,
          .by_person = canceled};
}

std::vector<std::string> logs_command(const cloud::RentedJob& course,
                                      const FollowOptions& options) {
  std::vector<std::string> words = {"logs", options.fold ? "--fold=always" : "--fold=never"};
  if (options.to_end) words.emplace_back("-f");
  if (options.json) words.emplace_back("--json");
  if (options.lines) words.push_back(fmt::format("--lines={}", *options.lines));
  if (options.rank) words.push_back(fmt::format("--rank={}", *options.rank));
  words.push_back(course.cluster);
  return words;
}

template <class Answer>
Result<std::vector<Answer>> answers_of(const Result<std::string>& said,
                                       Result<Answer> (*read)(std::string_view)) {
  if (!said) return Failure(said.error());
  std::vector<Answer> answers;
  add_answers(answers, agent_texts(*said), read);
  return answers;
}

template <class Answer>
Result<std::string> list_of(const Result<std::vector<Answer>>& answers,
                            std::string (*print)(const Answer&)) {
  if (!answers) return Failure(answers.error());
  std::vector<std::string> texts;
  for (const Answer& answer : *answers)
    texts.push_back(print(answer));
  return agent_list(texts);
}

}  // namespace

KnownJob known_owned(const cloud::RentedJob& course) {
  const bool begun = course.stage != cloud::RentedJob::Stage::renting;
  return {.id = course.job.empty() ? course.cluster : course.job,
          .name = course.cluster,
          .place = course.host,
          .command = course.note,
          .created_ms = course.began_ms,
          .status = {.state = begun ? JobState::running : JobState::starting}};
}

std::vector<cloud::RentedJob> owned_among(const std::vector<cloud::RentedJob>& courses) {
  std::vector<cloud::RentedJob> owned;
  std::copy_if(courses.begin(), courses.end(), std::back_inserter(owned),
               [](const cloud::RentedJob& course) { return !course.host.empty(); });
  std::stable_sort(owned.begin(), owned.end(),
                   [](const cloud::RentedJob& one, const cloud::RentedJob& other) {
                     return one.began_ms > other.began_ms;
                   });
  return owned;
}

std::optional<cloud::RentedJob> find_owned(std::string_view word,
                                           const std::vector<cloud::RentedJob>& courses) {
  // A job has no id before it begins, so an empty word would match it.
  for (const cloud::RentedJob& course : courses)
    if (!course.host.empty() && !word.empty() && (course.cluster == word || course.job == word))
      return course;
  return std::nullopt;
}

Result<std::vector<cloud::RentedJob>> owned_among(cloud::Journal& journal) {
  LOCKSTEP_TRY_ASSIGN(const auto courses, journal.jobs());
  return owned_among(courses);
}

Result<std::optional<cloud::RentedJob>> find_owned(std::string_view word, const Courses& courses) {
  if (courses) return find_owned(word, *courses);
  Error error = courses.error();
  error.message = fmt::format("cannot tell whether '{}' is a job of another host: {}",
                              printable(word, kMostName), error.message);
  if (error.hint.empty()) error.hint = "repeat the command";
  return Failure(std::move(error));
}

Status check_machines_here(const std::string& name, const Courses& courses) {
  LOCKSTEP_TRY_ASSIGN(const auto owned, find_owned(name, courses));
  if (!owned || owned->cluster != name) return {};
  return fail(Errc::unavailable,
              fmt::format("the machines of '{}' belong to {}", name, owned->host),
              fmt::format("call this command there: lockstep ssh {} logs in", owned->host));
}

std::optional<cloud::RentedJob> owned_course_of(const KnownJob& job,
                                                const std::vector<cloud::RentedJob>& courses) {
  // A job of the book may have the same name and run on the same host.
  for (const cloud::RentedJob& course : courses)
    if (!course.host.empty() && course.host == job.place && course.cluster == job.name &&
        course.began_ms == job.created_ms)
      return course;
  return std::nullopt;
}

Result<JobStatus> OwnedJob::status() {
  LOCKSTEP_TRY_ASSIGN(const OwnedState there, world_.state(course_));
  if (!there.known)
    return JobStatus{.state = course_.stage == cloud::RentedJob::Stage::working
                                  ? JobState::lost
                                  : JobState::starting};
  if (!there.job.empty()) record_.id = there.job;
  JobStatus status{.state = state_of(there.state).value_or(JobState::running)};
  if (there.ended) status.code = there.code;
  return status;
}

Result<std::string> OwnedJob::look(const std::vector<std::string>& question) const {
  std::vector<std::string> argv = {kOwnerLook, course_.rental};
  argv.insert(argv.end(), question.begin(), question.end());
  return world_.ask(course_, argv);
}

Result<Explanation> OwnedJob::why() {
  LOCKSTEP_TRY_ASSIGN(const std::string answer, look({"why"}));
  if (strip(answer) == kNotBegun) {
    LOCKSTEP_TRY_ASSIGN(const JobStatus now, status());
    return explain_job(
        record_, now, nullptr,
        fmt::format("lockstep logs {} shows what the course of the job has said", course_.cluster));
  }
  auto said = explanation_of(answer);
  if (!said) return Failure(std::move(said).error().within(printable(course_.host)));
  return said;
}

Result<std::vector<looks::Answer>> OwnedJob::looks(const looks::Question& question) {
  return answers_of(look({"looks", looks::print_question(question)}), looks::read_answer);
}

Result<std::vector<looks::NodeRows>> OwnedJob::ranks() {
  return answers_of(look({"ranks"}), looks::read_rows);
}

Result<std::vector<status::EventAnswer>> OwnedJob::events(std::int64_t after) {
  return answers_of(look({"events", std::to_string(after)}), status::read_event_answer);
}

Result<std::vector<PageThere>> OwnedJob::page(int node) {
  (void)node;
  return only_there(course_, "its page", "page");
}

Result<ProfileAnswers> OwnedJob::profile(const ProfileRequest& request) {
  (void)request;
  return only_there(course_, "its ranks", "profile");
}

JobState OwnedJob::state_now() {
  const auto now = status();
  return now ? now->state : record_.status.state;
}

Result<Followed> OwnedJob::follow_course(const OwnedShow& show) {
  LOCKSTEP_TRY_ASSIGN(const OwnedShown shown, show_owned(world_, course_, show));
  if (shown.signal != 0) return Followed{.left = true, .signal = shown.signal, .status = {}};
  if (!shown.code) return Followed{.status = {.state = state_now()}};
  return Followed{.status = status_of_end(*shown.code, false)};
}

// Lets the host's own `lockstep logs` print: only the host reads lines by rank.
Result<Followed> OwnedJob::print_there(const FollowOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const int code,
                      world_.run(course_, logs_command(course_, options), OwnerOutput::job));
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(io::state_folder()));
  const auto tried = settle_owned(journal, world_, course_, Telling::full);
  // The job may have ended, and its outputs cannot come here now: its code is known.
  if (!tried && tried.error().code == Errc::unavailable && options.to_end && signal_of(code) == 0)
    return follow_course({.how = kFollowQuiet, .leaves = true});
  LOCKSTEP_TRY_ASSIGN(const auto settled, tried);
  if (settled) return Followed{.status = status_of_end(*settled, false)};
  if (const int signal = signal_of(code); signal != 0)
    return Followed{.left = true, .signal = signal, .status = {}};
  if (options.to_end) {
    const JobState state = state_now();
    // The ranks have ended, and the course there brings the outputs: the user waits for its end.
    if (code == 0 || state == JobState::saving || is_over(state))
      return follow_course({.how = kFollowQuiet, .leaves = true});
    return Followed{.status = {.state = state, .code = code}};
  }
  if (code == 0) return Followed{.status = {}};
  return fail(
      code == kWrongUse ? Errc::invalid_input : Errc::unavailable,
      fmt::format("{} has not shown the output of '{}'", printable(course_.host), course_.cluster));
}

// Ctrl-C in a terminal that shows the output cancels the job, as in the terminal of its command.
Result<Followed> OwnedJob::follow(const FollowOptions& options) {
  if (!options.to_end || options.lines || options.rank || options.json) return print_there(options);
  using OnStop = FollowOptions::OnStop;
  return follow_course({.how = options.print ? "all" : kFollowQuiet,
                        .leaves = !options.print && options.on_stop == OnStop::leave});
}

Result<JobStatus> OwnedJob::cancel() {
  LOCKSTEP_TRY_ASSIGN(const OwnedShown shown,
                      show_owned(world_, course_, {.how = kFollowQuiet, .cancels = true}));
  if (shown.code) return status_of_end(*shown.code, true);
  const std::string what = fmt::format("'{}' has not ended at {}", course_.cluster, course_.host);
  if (shown.signal != 0) return Failure(Error{Errc::canceled, what, {}, shown.signal});
  return fail(Errc::unavailable, what);
}

Result<Resumed> OwnedJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return fail(Errc::invalid_input,
              fmt::format("the course of the job on '{}' at {} begins it again by itself",
                          course_.cluster, printable(course_.host)),
              fmt::format("lockstep why {} shows the state of the job", course_.cluster));
}

Result<std::string> answer_look(Job* job, const std::vector<std::string>& question) {
  const std::string& what = question.at(0);
  if (job == nullptr) return std::string(what == "why" ? kNotBegun : "[]");
  const std::string more = question.size() > 1 ? question[1] : std::string();
  if (what == "why") return explanation_answer(job->why());
  if (what == "looks") return list_of(job->looks(looks::read_question(more)), looks::answer_json);
  if (what == "ranks") return list_of(job->ranks(), looks::rows_json);
  const auto after = parse_int(more);
  if (what != "events" || !after) return fail(Errc::invalid_input, "unknown question");
  return list_of(job->events(*after), status::event_answer_json);
}

}  // namespace lockstep::jobs::rented
