#include "jobs/on_slurm/slurm_once.h"

#include "codec/json_members.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "slurm/squeue_command.h"
#include "slurm/tools.h"

#include <fmt/core.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr const char* kNote = "submitted.json";
// The request of a killed sbatch may still be in progress in the controller.
constexpr std::chrono::seconds kUnderWay{2};

// The script lies in the job's own folder, so the script's path identifies the job in squeue's
// list.
Result<std::string> ask_queue(const slurm::JobFolder& folder, const SlurmWorld& world,
                              std::optional<std::size_t> first_row) {
  LOCKSTEP_TRY_ASSIGN(
      const std::string listed,
      slurm::ask_tool(world.run, slurm::squeue_scripts_command(std::to_string(geteuid())),
                      "find out whether the job was submitted"));
  const std::string script = folder.at("script");
  return slurm::job_of_script(listed,
                              first_row ? fmt::format("{} {}", script, *first_row) : script);
}

}  // namespace

Result<SubmitLock> SubmitLock::take() {
  LOCKSTEP_TRY(io::make_folders(io::state_folder() + "/slurm"));
  const std::string path = io::state_folder() + "/slurm/submit.lock";
  SubmitLock lock;
  LOCKSTEP_TRY_ASSIGN(lock.file_, io::FileLock::open(path));
  // A file system without locks makes this fail at once: continue without the lock then.
  (void)lock.file_.wait_for_lock();
  return lock;
}

Result<std::string> submitted_before(const slurm::JobFolder& folder, const SlurmWorld& world) {
  std::error_code error;
  if (!std::filesystem::exists(folder.path(), error)) return std::string();
  const std::string id = std::filesystem::path(folder.path()).filename();
  // Three records may name the job: our note, the batch step's state, and Slurm's queue.
  if (const auto noted = find_submitted(id)) return slurm_place(*noted)->job;
  if (const auto state = folder.state(); state && slurm::is_job_id(state->job)) return state->job;
  LOCKSTEP_TRY_ASSIGN(std::string number, queued_job(folder, world));
  // The earlier submission failed: clear its folder for a new one.
  if (number.empty()) std::filesystem::remove_all(folder.path(), error);
  return number;
}

Result<std::string> queued_job(const slurm::JobFolder& folder, const SlurmWorld& world,
                               std::optional<std::size_t> first_row) {
  auto number = ask_queue(folder, world, first_row);
  if (number && number->empty()) {
    world.sleep(kUnderWay);
    number = ask_queue(folder, world, first_row);
  }
  if (number) return number;
  // canceled: without Slurm's answer the job may or may not exist.
  return Failure(Error{Errc::canceled, number.error().message,
                       "squeue shows whether the job is there, as soon as Slurm answers", 0});
}

Status note_submitted(const slurm::JobFolder& folder, const jobs::KnownJob& job) {
  return io::keep_record(
      folder.at(kNote),
      codec::print_json(nlohmann::ordered_json{
          {"name", job.name}, {"created_ms", job.created_ms}, {"plan", job.plan}}) +
          "\n");
}

std::optional<jobs::KnownJob> find_submitted(const std::string& id) {
  if (!job::is_job_id(id)) return std::nullopt;
  const auto text = io::read_file(slurm::JobFolder(slurm::JobFolder::place(id)).at(kNote));
  if (!text) return std::nullopt;
  const nlohmann::json json = codec::parse_json(*text);
  if (!json.is_object()) return std::nullopt;
  jobs::KnownJob job{.id = id,
                     .name = codec::text_member(json, "name"),
                     .place = "slurm",
                     .command = {},
                     .plan = codec::text_member(json, "plan"),
                     .created_ms = codec::integer_member(json, "created_ms")};
  const auto place = slurm_place(job);
  if (!place || !slurm::is_job_id(place->job)) return std::nullopt;
  return job;
}

}  // namespace lockstep::jobs::on_slurm
