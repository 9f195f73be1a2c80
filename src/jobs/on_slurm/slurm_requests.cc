#include "jobs/on_slurm/slurm_requests.h"

#include "base/text.h"
#include "codec/json.h"
#include "job/follower.h"
#include "job/job_requests.h"
#include "jobs/agent_answers.h"
#include "jobs/on_slurm/login_job.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_job.h"
#include "jobs/on_slurm/slurm_once.h"
#include "looks/question.h"
#include "proc/signals.h"
#include "status/profile_answer.h"
#include "status/profile_trace.h"

#include <signal.h>

#include <limits>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

// A client that waits only for the job's end asks for output behind this offset.
constexpr std::int64_t kBehindAll = std::numeric_limits<std::int64_t>::max() / 2;

// More than any cluster has nodes, and any job ranks.
constexpr std::int64_t kMostPlace = 1 << 24;

struct Asked {
  jobs::KnownJob job;
  SlurmPlace place;
  const SlurmWorld& world;

  SlurmJob as_job() const { return {job, place, world}; }
};

Result<std::int64_t> number_in(const std::vector<std::string>& words, std::size_t at) {
  const auto value = at < words.size() ? parse_int(words[at]) : std::nullopt;
  if (!value || *value < 0) return fail(Errc::invalid_input, "host-job: a number is missing");
  return *value;
}

// A node or a rank.
Result<int> place_in(const std::vector<std::string>& words, std::size_t at) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t value, number_in(words, at));
  if (value > kMostPlace) return fail(Errc::invalid_input, "host-job: a number is too large");
  return static_cast<int>(value);
}

Result<int> follow(const Asked& asked, const std::vector<std::string>& words, bool to_end) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t from, number_in(words, 2));
  LOCKSTEP_TRY(follow_slurm_job({.job = asked.job,
                                 .place = asked.place,
                                 .options = {.print = from < kBehindAll, .to_end = to_end},
                                 .from = from},
                                asked.world));
  return 0;
}

Result<int> tell_places(const Asked& asked, const std::vector<std::string>& words) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t lines, number_in(words, 2));
  std::string output = asked.place.output;
  if (output.empty()) {  // only Slurm knows the job's output file
    LOCKSTEP_TRY_ASSIGN(const jobs::KnownJob told, find_slurm_job(asked.place.job, asked.world));
    output = slurm_place(told).value_or(SlurmPlace()).output;
  }
  const nlohmann::ordered_json answer{{"out", job::place_of_last(output, lines)}, {"err", 0}};
  LOCKSTEP_TRY(asked.world.print(codec::print_json(answer) + "\n"));
  return 0;
}

job::Stage stage_of(JobState state) {
  if (state == JobState::lost) return job::Stage::lost;
  if (is_over(state)) return job::Stage::ended;
  if (state == JobState::starting) return job::Stage::prepared;
  return state == JobState::queued ? job::Stage::queued : job::Stage::running;
}

// Clients expect a supervisor's record. Slurm's jobs have no supervisor, so make a record of
// Slurm's answer.
Result<int> tell(const Asked& asked, const JobStatus& status) {
  job::JobRecord record;
  record.state.stage = stage_of(status.state);
  record.state.ended_ms = status.ended_ms;
  record.state.code = status.code.value_or(0);
  record.state.canceled = status.canceled;
  record.spec.id = asked.job.id;
  record.spec.name = asked.job.name;
  record.spec.created_ms = asked.job.created_ms;
  // A list with one record, as in `host-job status`.
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  all.push_back(to_json(record));
  LOCKSTEP_TRY(asked.world.print(codec::print_json(all) + "\n"));
  return 0;
}

Result<int> tell_status(const Asked& asked) {
  LOCKSTEP_TRY_ASSIGN(const JobStatus status, asked.as_job().status());
  return tell(asked, status);
}

Result<int> explain(const Asked& asked) {
  LOCKSTEP_TRY(asked.world.print(explanation_answer(asked.as_job().why())));
  return 0;
}

Result<int> cancel(const Asked& asked) {
  LOCKSTEP_TRY_ASSIGN(const JobStatus status, asked.as_job().cancel());
  return tell(asked, status);
}

// words: "looks", the id, and perhaps a looks::Question; "events", the id, and perhaps the last
// event that is known; "ranks" and the id.
Result<int> tell_answers(const Asked& asked, const std::vector<std::string>& words) {
  std::vector<std::string> question = {words[0]};
  if (words.size() > 2 && words[0] == "looks") {
    std::string known = looks::print_question(looks::read_question(words[2]));
    if (known.empty()) return fail(Errc::invalid_input, "host-job: looks ID [QUESTION]");
    question.push_back(std::move(known));
  } else if (words.size() > 2) {
    LOCKSTEP_TRY_ASSIGN(const std::int64_t number, number_in(words, 2));
    question.push_back(std::to_string(number));
  } else if (words[0] == "events") {
    question.emplace_back("0");
  }
  LOCKSTEP_TRY_ASSIGN(const auto texts, asked.as_job().ask(question));
  LOCKSTEP_TRY(asked.world.print(agent_list(texts) + "\n"));
  return 0;
}

// words: "page", the id, the node.
Result<int> tell_page(const Asked& asked, const std::vector<std::string>& words) {
  LOCKSTEP_TRY_ASSIGN(const int node, place_in(words, 2));
  LOCKSTEP_TRY_ASSIGN(const auto found, asked.as_job().page(node));
  std::vector<std::string> texts;
  for (const PageThere& each : found)
    texts.push_back(page::page_answer_json(each.page));
  LOCKSTEP_TRY(asked.world.print(agent_list(texts) + "\n"));
  return 0;
}

Result<int> tell_profile(const Asked& asked, const std::vector<std::string>& words) {
  if (words.size() != 3) return fail(Errc::invalid_input, "host-job: profile ID QUERY");
  LOCKSTEP_TRY_ASSIGN(const auto query, status::read_profile_query(words[2]));
  LOCKSTEP_TRY_ASSIGN(const auto texts,
                      asked.as_job().ask({"profile", status::print_profile_query(query)}));
  LOCKSTEP_TRY(asked.world.print(agent_list(texts) + "\n"));
  return 0;
}

// words: "profile-trace", the id, the folder, the profile's id, the rank.
Result<int> send_trace(const Asked& asked, const std::vector<std::string>& words) {
  LOCKSTEP_TRY_ASSIGN(const std::int64_t id, number_in(words, 3));
  LOCKSTEP_TRY_ASSIGN(const int rank, place_in(words, 4));
  LOCKSTEP_TRY_ASSIGN(const std::string trace,
                      asked.as_job().find_trace({.folder = words[2], .profile = id, .rank = rank}));
  LOCKSTEP_TRY(status::read_trace(trace, asked.world.print));
  return 0;
}

}  // namespace

std::optional<Result<int>> serve_slurm_request(const std::vector<std::string>& words,
                                               const SlurmWorld& world) {
  const auto verb = job::verb_of(words);
  if (!verb || words.size() < 2) return std::nullopt;
  auto job = find_submitted(words[1]);
  if (!job) return std::nullopt;
  proc::block(proc::handled_signals());
  // Slurm's programs are children whose exit codes are needed, so SIGCHLD must not be ignored.
  signal(SIGCHLD, SIG_DFL);
  auto place = *slurm_place(*job);
  const Asked asked{std::move(*job), std::move(place), world};
  switch (*verb) {
    case job::Verb::follow:
      return follow(asked, words, true);
    case job::Verb::print:
      return follow(asked, words, false);
    case job::Verb::places:
      return tell_places(asked, words);
    case job::Verb::status:
      return tell_status(asked);
    case job::Verb::cancel:
      return cancel(asked);
    case job::Verb::report:
      return explain(asked);
    case job::Verb::looks:
    case job::Verb::ranks:
    case job::Verb::events:
      return tell_answers(asked, words);
    case job::Verb::page:
      return tell_page(asked, words);
    case job::Verb::profile:
      return tell_profile(asked, words);
    case job::Verb::profile_trace:
      return send_trace(asked, words);
    case job::Verb::rows:  // of a job on hosts
    case job::Verb::start:
      break;
  }
  return std::nullopt;
}

}  // namespace lockstep::jobs::on_slurm
