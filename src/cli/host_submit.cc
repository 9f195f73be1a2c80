// lockstep host-submit: the login host's end of `lockstep submit --on`. Without words it submits
// the job of the request on stdin. `check` says whether there is an sbatch. `known ID` prints a job
// that was submitted before. `bad-nodes` and `forget-node CLUSTER NODE` are about failed nodes.
// People do not call this.
#include "base/exit_codes.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "cli/submit.h"
#include "cli/submit_options.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "jobs/on_slurm/login_submit.h"
#include "jobs/on_slurm/slurm_bad_nodes.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "proc/tool_output.h"
#include "setup/environment.h"
#include "setup/tool.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

// Bytes. jobs::on_slurm::parse_request() has the same limit.
constexpr std::size_t kMostInput = 8UL << 20;

Result<std::string> read_input() {
  std::string text;
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read the request", errno);
    if (got == 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostInput) return fail(Errc::invalid_input, "the request is too long");
  }
}

// Sets "NAME=value" variables of this process. Skips entries without a name.
void set(const std::vector<std::string>& variables) {
  for (const std::string& entry : variables) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && equals > 0)
      setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

// Submits the job of the request on stdin, or prints its preview.
Result<ExitCode> submit(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const std::string input, read_input());
  LOCKSTEP_TRY_ASSIGN(const jobs::on_slurm::LoginRequest request,
                      jobs::on_slurm::parse_request(input));
  const std::string folder = std::filesystem::path(io::home_folder()) / request.folder;
  // A preview syncs nothing, so the folder may not exist yet.
  const bool is_here = chdir(folder.c_str()) == 0;
  if (!is_here && !request.preview) return fail_sys("enter " + printable(folder), errno);
  // sbatch passes its own environment on to the job, so set the job's variables here. The client's
  // variables come last and win over the project's environment.
  LOCKSTEP_TRY_ASSIGN(const auto variables,
                      setup::project_environment(folder, proc::own_environment()));
  set(variables);
  set(request.env);
  const Call own{call.program, request.words, {}};
  // Block signals only now: while this process reads the request, a signal must end it.
  take_signals(Signals::blocked);
  const auto code = submit_for(own, {request.id, request.preview ? folder : std::string()});
  // The user has called `lockstep submit`, so errors carry that name.
  return code ? *code : refuse(submit_table().program, code.error());
}

// Prints Slurm's id, output and folder of a job submitted earlier. A client asks after it lost the
// connection before the answer. Returns kNotSubmitted if Slurm never got the job.
Result<ExitCode> tell_known(const std::string& id) {
  if (!job::is_job_id(id)) return fail(Errc::invalid_input, "the argument must be a job id");
  const slurm::JobFolder folder(slurm::JobFolder::place(id));
  // A submission may still be under way after the loss of the client. Wait until it releases the
  // lock.
  LOCKSTEP_TRY_ASSIGN(const auto lock, jobs::on_slurm::SubmitLock::take());
  LOCKSTEP_TRY_ASSIGN(const std::string number, jobs::on_slurm::submitted_before(folder));
  if (number.empty()) return passed_on(jobs::on_slurm::kNotSubmitted);
  jobs::on_slurm::SlurmPlace place{number, folder.path(), {}};
  auto noted = jobs::on_slurm::find_submitted(id);
  if (noted) place = *jobs::on_slurm::slurm_place(*noted);
  std::puts(
      codec::print_json(nlohmann::ordered_json{
                            {"job", place.job}, {"output", place.output}, {"folder", place.folder}})
          .c_str());
  if (noted) return ExitCode::ok;
  // The submission died between sbatch and the note. Write the note now: logs, wait and cancel
  // need the note to find the job.
  jobs::KnownJob job{.id = id, .name = {}, .place = "slurm", .command = {}};
  job.plan = jobs::on_slurm::plan_text(place);
  LOCKSTEP_TRY(jobs::on_slurm::note_submitted(folder, job));
  return ExitCode::ok;
}

Result<ExitCode> serve(const Call& call) {
  const Args& words = call.words;
  if (words.empty()) return submit(call);
  if (words == Args{"check"})
    return setup::find_program("sbatch").empty() ? ExitCode::not_found : ExitCode::ok;
  if (words.size() == 2 && words[0] == "known") return tell_known(words[1]);
  LOCKSTEP_TRY_ASSIGN(const std::string text, jobs::on_slurm::serve_bad_nodes(words));
  std::fputs(text.c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kHostSubmit{.name = "host-submit",
                                              .summary = "the host's end of submit --on",
                                              .run = serve,
                                              .fails_with = always(ExitCode::failed),
                                              .listed = false};

}  // namespace lockstep::cli
