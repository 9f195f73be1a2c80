#include "jobs/on_slurm/login_submit.h"

#include "base/backoff.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "jobs/on_slurm/slurm_submit.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::size_t kMostRequest = 8UL << 20;
constexpr std::chrono::minutes kPatience{2};
constexpr Backoff::Rules kPauses{.first = std::chrono::milliseconds(500),
                                 .longest = std::chrono::milliseconds(5000)};
constexpr std::chrono::seconds kPatienceToKnow{10};

hosts::CommandRequest asking(const hosts::HostPlace& place, std::vector<std::string> words) {
  return {.hosts = {place},
          .argv = std::move(words),
          .own_binary = true,
          .input = hosts::CommandRequest::Input::none,
          .output = hosts::CommandRequest::Output::keep_out};
}

Result<hosts::HostEnding> ask(const hosts::CommandRequest& command, const LoginWorld& world) {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings, world.run(loop, command));
  return std::move(endings.at(0));
}

Failure left_by(const hosts::HostEnding& signaled) {
  return Failure(Error{Errc::canceled, signaled.error, {}, signaled.code - 128});
}

Result<SubmittedThere> answer_of(const hosts::HostPlace& place, const std::string& text) {
  const nlohmann::json json = codec::parse_json(text);
  if (!json.is_object() || codec::text_member(json, "job").empty())
    return fail(Errc::corrupt,
                fmt::format("{}: unexpected answer: {}", place.name, printable(text)));
  return SubmittedThere{.name = printable(codec::text_member(json, "name")),
                        .job = printable(codec::text_member(json, "job")),
                        .output = codec::text_member(json, "output"),
                        .folder = codec::text_member(json, "folder")};
}

}  // namespace

std::string request_text(const LoginRequest& request) {
  return codec::print_json(nlohmann::ordered_json{{"id", request.id},
                                                  {"folder", request.folder},
                                                  {"words", request.words},
                                                  {"env", request.env},
                                                  {"preview", request.preview}}) +
         "\n";
}

Result<LoginRequest> parse_request(std::string_view text) {
  const nlohmann::json json = codec::parse_json(text, {.bytes = kMostRequest});
  LoginRequest request;
  if (json.is_object()) {
    request = {.id = codec::text_member(json, "id"),
               .folder = codec::text_member(json, "folder"),
               .words = codec::texts_member(json, "words"),
               .env = codec::texts_member(json, "env")};
    const auto preview = json.find("preview");
    request.preview = preview != json.end() && preview->is_boolean() && preview->get<bool>();
  }
  if (!job::is_job_id(request.id) || request.folder.empty())
    return fail(Errc::invalid_input, "host-submit: the request names no job");
  return request;
}

// Codes above 128 mean a signal; 255 means that the host was not reached.
Status check_login(const hosts::HostPlace& place, const LoginWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const auto ending, ask(asking(place, {"host-submit", "check"}), world));
  if (!ending.error.empty() && ending.signal == 0 && ending.code > 128 &&
      ending.code != kExitNotReached)
    return left_by(ending);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  if (ending.code == kExitNotFound)
    return fail(
        Errc::not_found,
        fmt::format("{} has no sbatch in PATH: the host must be a Slurm login host", place.name),
        "name the host where you call sbatch; a PATH set only for interactive shells does not "
        "count");
  if (ending.code != 0) return fail(Errc::unavailable, place.name + " can't submit jobs");
  return {};
}

Result<int> preview_on_login(const hosts::HostPlace& place, const LoginRequest& request,
                             const LoginWorld& world) {
  hosts::CommandRequest command = asking(place, {"host-submit"});
  command.input = hosts::CommandRequest::Input::given;
  command.given = {request_text(request)};
  command.output = hosts::CommandRequest::Output::print;
  LOCKSTEP_TRY_ASSIGN(const auto ending, ask(command, world));
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  return ending.code;
}

Result<SubmittedThere> submit_on_login(const hosts::HostPlace& place, const LoginRequest& request,
                                       const LoginWorld& world) {
  hosts::CommandRequest command = asking(place, {"host-submit"});
  command.input = hosts::CommandRequest::Input::given;
  command.given = {request_text(request)};
  const auto end = world.now() + kPatience;
  Backoff pauses(kPauses);
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const auto ending, ask(command, world));
    if (ending.error.empty() && ending.code != 0) return SubmittedThere{.code = ending.code};
    if (ending.error.empty()) return answer_of(place, ending.out);
    // Codes above 128 mean a signal; 255 is ssh's code for a lost or refused connection.
    if (ending.code != kExitNotReached && ending.code > 128) return left_by(ending);
    if (ending.code != kExitNotReached) return fail(Errc::unavailable, ending.error);
    // Retrying is safe: the host submits only one job under the request's id.
    if (world.now() > end)
      return fail(
          Errc::unavailable,
          fmt::format("{}; job {} may or may not have been submitted", ending.error, request.id),
          "lockstep jobs finds out once the host is reached");
    log::warning("{}; asking again about job {}", ending.error, request.id);
    world.sleep(pauses.next());
  }
}

namespace {

Status note_number(const jobs::JobBook& book, jobs::KnownJob& job, const SubmittedThere& there) {
  job.plan = plan_text(SlurmPlace{there.job, there.folder, there.output});
  job.status = {.state = JobState::queued};
  LOCKSTEP_TRY(book.note_plan(job.id, job.plan));
  return book.note(job.id, job.status);
}

}  // namespace

Result<SubmittedThere> submit_recorded(const jobs::JobBook& book, jobs::KnownJob& job,
                                       const LoginRequest& request, const LoginWorld& world) {
  job.plan = plan_text({});
  job.status = {.state = JobState::starting};
  // Record the job first. If this command dies before the answer, the next one asks for the number
  // (complete_submission()).
  LOCKSTEP_TRY(book.add(job));
  auto there = submit_on_login(job.nodes.at(0), request, world);
  if (there && there->code != 0) LOCKSTEP_TRY(book.remove(job.id));
  if (there && there->code == 0) LOCKSTEP_TRY(note_number(book, job, *there));
  return there;
}

Status complete_submission(const jobs::JobBook& book, jobs::KnownJob& job,
                           const LoginWorld& world) {
  const auto place = slurm_place(job);
  // Only a job without Slurm's id is incomplete: its client lost the connection before the answer
  // came.
  if (!place || !place->job.empty() || job.nodes.size() != 1) return {};
  hosts::CommandRequest command = asking(job.nodes[0], {"host-submit", "known", job.id});
  command.limit = kPatienceToKnow;
  LOCKSTEP_TRY_ASSIGN(const auto ending, ask(command, world));
  // The host has no such job. Without this note the job would be asked for again and again.
  if (ending.code == kNotSubmitted) {
    job.status = {.state = JobState::lost};
    return book.note(job.id, job.status);
  }
  // A silent host says nothing about the job. The next command asks again.
  if (ending.code != 0 || !ending.error.empty()) return {};
  const auto there = answer_of(job.nodes[0], ending.out);
  // Do not fail: `lockstep jobs` must list the jobs of other hosts all the same.
  if (!there) {
    log::warning("{}", there.error().message);
    return {};
  }
  return note_number(book, job, *there);
}

}  // namespace lockstep::jobs::on_slurm
