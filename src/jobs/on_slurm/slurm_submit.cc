#include "jobs/on_slurm/slurm_submit.h"

#include "base/environment.h"
#include "base/id.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "host/identity.h"
#include "hosts/log_lines.h"
#include "io/fd.h"
#include "io/file_system.h"
#include "io/folder_names.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "jobs/on_slurm/array_orders.h"
#include "jobs/on_slurm/array_submit.h"
#include "jobs/on_slurm/job_wheels.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_resume.h"
#include "proc/spawn.h"
#include "setup/tool.h"
#include "slurm/agent_words.h"
#include "slurm/batch_script.h"
#include "slurm/job_folder.h"
#include "slurm/job_report.h"
#include "slurm/next_job.h"
#include "slurm/old_script.h"
#include "ssh/binary.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr const char* kPlace = "slurm";
constexpr std::size_t kSecret = 12;  // characters of an unguessable name in /tmp

std::vector<std::string> run_words(const SlurmRequest& request, const slurm::JobPlan& plan,
                                   const slurm::JobFolder& folder) {
  return slurm::agent_words({.nodes = plan.nodes,
                             .min_nodes = request.min_nodes,
                             .spares = plan.spares,
                             .workers = plan.workers,
                             .folder = folder.path(),
                             .prefix = hosts::kRankTemplate,
                             .run = request.run});
}

slurm::Carry carry_of(const SlurmRequest& request) {
  if (request.binary == SlurmRequest::Binary::carried) return slurm::Carry::always;
  // Nodes may not see a state folder on a local disk, so the batch script carries the binary.
  const bool may = request.binary == SlurmRequest::Binary::automatic;
  return may && io::is_local(io::state_folder()) ? slurm::Carry::unless_seen : slurm::Carry::no;
}

struct Draft {
  slurm::JobPlan plan;
  std::string script;
  std::optional<RowSpread> spread = {};  // of a sweep
  std::vector<RowArray> arrays = {};     // of a sweep that is not a user's own script

  bool has_several() const { return arrays.size() > 1; }
};

// Refuses what only the later arrays cannot have, before Slurm has the first.
Status check_arrays(const SlurmRequest& request, const std::vector<RowArray>& arrays) {
  const SlurmSweep& sweep = *request.sweep;
  if (arrays.size() > kMostArrays)
    return fail(Errc::invalid_input,
                fmt::format("{} rows need {} array jobs, of {} rows at most: more than {}",
                            sweep.rows.size(), arrays.size(), sweep.array_rows, kMostArrays),
                fewer_rows_hint(arrays, kMostArrays));
  // Slurm 22.05 takes "a?b,c" for "a?b?c", so that the arrays would not wait for each other.
  const slurm::Setting* after = slurm::find_setting(request.wish.settings, "dependency");
  if (arrays.size() > 1 && must_chain(sweep.rows.size(), sweep.at_once) && after != nullptr &&
      after->value.find('?') != std::string::npos)
    return fail(Errc::invalid_input,
                fmt::format("--dependency={} must have no '?': with --at-once, each array of this "
                            "sweep must also wait for the one before it",
                            printable(after->value, 100)),
                "leave out --at-once, or " + fewer_rows_hint(arrays, 1));
  return {};
}

// Plans the arrays of a sweep.
Status draft_arrays(const SlurmRequest& request, slurm::JobWish& wish, Draft& draft) {
  if (request.script && request.sweep->array.empty())
    return fail(Errc::invalid_input,
                "--sweep needs a training command, and not a batch script or accelerate's words",
                "lockstep submit --sweep lr=0.1,0.2 -- train.py --lr {lr}");
  draft.spread.emplace();
  wish.array = request.sweep->array;
  if (!wish.array.empty()) return {};
  const SlurmSweep& sweep = *request.sweep;
  draft.spread = spread_of(sweep.rows, sweep.array_rows);
  LOCKSTEP_TRY_ASSIGN(draft.arrays, arrays_of(sweep.rows, sweep.at_once, *draft.spread));
  LOCKSTEP_TRY(check_arrays(request, draft.arrays));
  wish.array = draft.arrays.front().tasks;
  wish.several_arrays = draft.has_several();
  return {};
}

// Says what a job of several arrays is to Slurm.
std::string note_of_arrays(const SlurmSweep& sweep, std::size_t arrays) {
  return fmt::format("{} rows need {} array jobs, of {} rows at most, which run {}",
                     sweep.rows.size(), arrays, sweep.array_rows,
                     must_chain(sweep.rows.size(), sweep.at_once)
                         ? "one after the other because of --at-once"
                         : "side by side");
}

Result<Draft> draft_of(const SlurmRequest& request, const slurm::JobFolder& folder) {
  Draft draft;
  slurm::JobWish wish = request.wish;
  if (request.sweep) LOCKSTEP_TRY(draft_arrays(request, wish, draft));
  LOCKSTEP_TRY_ASSIGN(draft.plan, slurm::plan_job(wish));
  if (draft.has_several())
    draft.plan.notes.push_back(note_of_arrays(*request.sweep, draft.arrays.size()));
  if (request.min_nodes &&
      (!draft.plan.nodes || *request.min_nodes < 1 || *request.min_nodes > *draft.plan.nodes))
    return fail(Errc::invalid_input, "--min-nodes must be a number from 1 to --nodes");
  // Slurm ends a job without any message if it cannot open the output file, so check the folder
  // here.
  const std::string place = std::filesystem::path(draft.plan.output).parent_path();
  std::error_code error;
  // A '%' stands for a value that only the running job knows.
  if (request.folder_is_here && place.find('%') == std::string::npos &&
      !std::filesystem::is_directory(place, error))
    return fail(Errc::invalid_input,
                fmt::format("--output: the folder {} does not exist", printable(place)), "make it");
  if (request.script) {
    LOCKSTEP_TRY_ASSIGN(draft.script,
                        slurm::old_script_text(draft.plan, *request.script,
                                               {.version = LOCKSTEP_VERSION,
                                                .binary = folder.at("lockstep"),
                                                .folder = folder.path(),
                                                .has_rows = request.sweep.has_value(),
                                                .command = shell_join(request.command)}));
    return draft;
  }
  const slurm::Carry carry = carry_of(request);
  draft.script = slurm::batch_script(
      draft.plan,
      {.version = LOCKSTEP_VERSION,
       .binary = folder.at("lockstep"),
       .carry = carry == slurm::Carry::no ? "" : random_suffix(kSecret),
       .unless_seen = carry == slurm::Carry::unless_seen,
       .folder = folder.path(),
       .first_row = draft.spread ? std::optional(draft.spread->first_row) : std::nullopt,
       .command = shell_join(request.command),
       .run = run_words(request, draft.plan, folder),
       .node = request.node});
  return draft;
}

// Removes binaries of versions without a job: only one link to the file is left.
void remove_unused_binaries() {
  const std::string folder = io::state_folder() + "/slurm/";
  for (const std::string& name : io::names_in(folder)) {
    const std::string path = folder + name;
    struct stat file {};
    if (name.starts_with("lockstep-") && stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
        file.st_nlink == 1)
      unlink(path.c_str());
  }
}

// Gives the job a copy of this binary: another version may be installed while the job waits.
Status give_binary(const slurm::JobFolder& folder) {
  LOCKSTEP_TRY_ASSIGN(const ssh::Binary own, ssh::own_binary());
  const std::string place = folder.at("lockstep");
  const std::string kept = fmt::format("{}/slurm/lockstep-{}", io::state_folder(), own.name.id);
  if (::link(kept.c_str(), place.c_str()) == 0) return {};
  std::error_code error;
  std::filesystem::copy_file(own.path, place, error);
  if (error) return fail_sys("copy " + own.path + " to " + place, error.value());
  if (chmod(place.c_str(), 0755) != 0) return fail_sys("make " + place + " a program", errno);
  remove_unused_binaries();
  // Later jobs share this copy. Without hard links each job has its own.
  (void)::link(place.c_str(), kept.c_str());
  return {};
}

// Returns how many nodes the job can do without.
int dispensable(const SlurmRequest& request, const slurm::JobPlan& plan) {
  const int fewer = request.min_nodes && plan.nodes ? *plan.nodes - *request.min_nodes : 0;
  return plan.spares + fewer;
}

// Writes the stand-ins for launchers called by the user's own script.
Status give_stand_ins(const SlurmRequest& request, const slurm::JobFolder& folder) {
  for (const char* name : {"bin", "task-bin", "launches"})
    if (mkdir(folder.at(name).c_str(), 0700) != 0)
      return fail_sys("make " + folder.at(name), errno);
  for (const slurm::FolderFile& file : slurm::stand_in_files(folder.at("lockstep"))) {
    LOCKSTEP_TRY(io::write_file(folder.at(file.name), file.text));
    if (chmod(folder.at(file.name).c_str(), 0755) != 0)
      return fail_sys("make " + folder.at(file.name) + " a program", errno);
  }
  return io::write_file(folder.at("launch.json"),
                        slurm::settings_text({.spares = request.wish.spares,
                                              .min_nodes = request.min_nodes.value_or(0),
                                              .carry = carry_of(request),
                                              .run = request.run}));
}

// Writes the rows, for the tasks of the array.
Status give_rows(const SlurmRequest& request, const slurm::JobFolder& folder) {
  const std::string csv = rows::print_csv(request.sweep->table);
  if (csv.size() > rows::kMostFile)
    return fail(Errc::invalid_input,
                fmt::format("the values of all rows have more than {} bytes", rows::kMostFile),
                "let the script find long values by a short name");
  if (mkdir(folder.at("rows").c_str(), 0700) != 0)
    return fail_sys("make " + folder.at("rows"), errno);
  // Values may be secret, so another submission gets them from the user again. --preflight, which
  // is no secret, comes with its value.
  std::string names;
  for (const std::string& variable : request.env)
    names +=
        (variable.starts_with("LOCKSTEP_PREFLIGHT=") ? variable
                                                     : variable.substr(0, variable.find('='))) +
        "\n";
  LOCKSTEP_TRY(io::write_file(folder.at(kVariablesFile), names));
  return io::write_file(folder.at(slurm::kRowsFile), csv);
}

Status fill(const slurm::JobFolder& folder, const SlurmRequest& request, const Draft& draft) {
  LOCKSTEP_TRY(give_binary(folder));
  if (request.script) LOCKSTEP_TRY(give_stand_ins(request, folder));
  if (request.sweep) LOCKSTEP_TRY(give_rows(request, folder));
  if (draft.plan.chain)
    LOCKSTEP_TRY(io::write_file(
        folder.at(slurm::kNextJobFile),
        slurm::next_job_text(slurm::next_job_of(draft.plan.settings, request.arguments))));
  LOCKSTEP_TRY(add_wheels(
      folder, request.wheels,
      {.wheels = {}, .place = request.wheel_place, .spare = dispensable(request, draft.plan)}));
  // Only this user can read the folder.
  LOCKSTEP_TRY(io::write_file(folder.at("token"), random_uuid4() + random_uuid4() + "\n"));
  if (chmod(folder.at("token").c_str(), 0600) != 0)
    return fail_sys("close the token's file", errno);
  return io::write_file(folder.at("script"), draft.script);
}

// Returns whether Slurm may have the job although sbatch failed: sbatch was killed, or the
// controller answered too late.
bool may_have_arrived(const setup::ToolEnding& ending) {
  constexpr int kKilled = 128;
  return ending.code > kKilled ||
         (ending.code != 0 &&
          std::any_of(ending.tail.begin(), ending.tail.end(), [](const std::string& line) {
            return to_lower(line).find("timed out") != std::string::npos;
          }));
}

// Calls sbatch, which prints "ID" or "ID;CLUSTER". canceled: it is not known whether Slurm has the
// job.
Result<std::string> hand_over(const SbatchCall& asked, const slurm::JobFolder& folder,
                              const SlurmWorld& world) {
  const std::string program = setup::find_program("sbatch");
  if (program.empty())
    return fail(Errc::not_found, "sbatch is missing: this machine must be a Slurm login node",
                "submit there, or give --on user@login");
  setup::ToolCall call{.argv = {program, "--parsable"}, .env = asked.env, .folder = asked.working};
  call.argv.insert(call.argv.end(), asked.settings.begin(), asked.settings.end());
  call.argv.push_back(folder.at("script"));
  call.argv.insert(call.argv.end(), asked.arguments.begin(), asked.arguments.end());
  if (asked.first_row) call.argv.push_back(std::to_string(*asked.first_row));
  std::vector<std::string> lines;
  LOCKSTEP_TRY_ASSIGN(const auto ending, setup::run_tool(call, [&](std::string_view line) {
                        if (lines.size() < 100) lines.emplace_back(line);
                      }));
  if (may_have_arrived(ending)) {
    LOCKSTEP_TRY_ASSIGN(std::string job, queued_job(folder, world, asked.first_row));
    if (!job.empty()) return job;
  }
  if (ending.code != 0)
    return fail(Errc::unavailable, "sbatch refused the job: " + setup::telling_line(ending.tail));
  for (const std::string& line : lines) {
    const std::string id = split(line, ';').front();
    if (!id.empty() &&
        std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return id;
  }
  return fail(Errc::corrupt, "sbatch printed no job id: " + printable(join(lines, " ")));
}

SbatchCall sbatch_call(const SlurmRequest& request, const slurm::JobPlan& plan) {
  SbatchCall call{.settings = {},
                  .arguments = request.arguments,
                  .env = request.env,
                  .working = request.wish.folder};
  // Pass no setting from the script's own lines: SBATCH_* variables override the lines, as in
  // sbatch. --array is never such a line, as the plan sets it: SBATCH_ARRAY_INX must not change
  // the recorded rows.
  for (const slurm::Setting& setting : plan.settings)
    if (setting.line == 0) call.settings.push_back(slurm::word_of(setting));
  return call;
}

std::size_t row_count(std::int64_t value) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(value, 0, rows::kMostRows));
}

std::string output_of(const slurm::JobPlan& plan, const std::string& job) {
  const slurm::Setting* name = slurm::find_setting(plan.settings, "job-name");
  return slurm::expand_output(
             plan.output,
             {.job = job, .name = name == nullptr ? "" : name->value, .user = env_text("USER")})
      .value_or("");
}

// Returns Slurm's ids by the index of the array. The id of a job that is not a sweep stands alone.
Result<std::vector<std::string>> hand_over_all(const SlurmRequest& request, const Draft& draft,
                                               const slurm::JobFolder& folder,
                                               const SlurmWorld& world) {
  const SbatchCall call = sbatch_call(request, draft.plan);
  if (draft.arrays.empty()) {
    LOCKSTEP_TRY_ASSIGN(std::string number, hand_over(call, folder, world));
    return std::vector{std::move(number)};
  }
  LOCKSTEP_TRY_ASSIGN(auto numbers,
                      submit_arrays({.sbatch = call,
                                     .arrays = draft.arrays,
                                     .several = draft.has_several(),
                                     .one_at_a_time = must_chain(request.sweep->rows.size(),
                                                                 request.sweep->at_once)},
                                    folder, world));
  std::vector<std::string> by_index(draft.arrays.back().index + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    by_index[draft.arrays[i].index] = std::move(numbers[i]);
  return by_index;
}

// Submits the job and returns Slurm's ids. Removes the folder of a refused job.
Result<std::vector<std::string>> hand_in(const SlurmRequest& request, const Draft& draft,
                                         const std::string& id, const SlurmWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const slurm::JobFolder folder, slurm::JobFolder::create(id));
  const Status filled = fill(folder, request, draft);
  auto numbers = filled ? hand_over_all(request, draft, folder, world)
                        : Result<std::vector<std::string>>(Failure(filled.error()));
  // canceled: Slurm may have the job, so the folder must stay.
  if (numbers || numbers.error().code == Errc::canceled) return numbers;
  std::error_code error;
  std::filesystem::remove_all(folder.path(), error);
  return numbers;
}

Status record(const jobs::JobBook& book, const slurm::JobFolder& folder,
              const jobs::KnownJob& known) {
  LOCKSTEP_TRY(note_submitted(folder, known));
  // A repeated request finds the job recorded already: replace the record.
  LOCKSTEP_TRY(book.remove(known.id));
  return book.add(known);
}

}  // namespace

Result<Submission> preview_slurm_job(const SlurmRequest& request) {
  LOCKSTEP_TRY_ASSIGN(Draft draft,
                      draft_of(request, slurm::JobFolder(slurm::JobFolder::place("ID"))));
  return Submission{.script = std::move(draft.script),
                    .settings = std::move(draft.plan.settings),
                    .notes = std::move(draft.plan.notes)};
}

Result<Submission> submit_slurm_job(const SlurmRequest& request, const SlurmWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const jobs::JobBook book, jobs::JobBook::open(io::state_folder()));
  const std::string id = request.id.empty() ? job::new_job_id() : request.id;
  const slurm::JobFolder folder(slurm::JobFolder::place(id));
  LOCKSTEP_TRY_ASSIGN(Draft draft, draft_of(request, folder));
  SubmitLock lock;
  std::vector<std::string> numbers;
  // A client may repeat a request under the same id. Look for the first submission under the lock.
  if (!request.id.empty()) {
    LOCKSTEP_TRY_ASSIGN(lock, SubmitLock::take());
    LOCKSTEP_TRY_ASSIGN(std::string number, submitted_before(folder, world));
    if (!number.empty()) numbers = {std::move(number)};
  }
  if (numbers.empty()) {
    LOCKSTEP_TRY_ASSIGN(numbers, hand_in(request, draft, id, world));
  }
  const std::string number = numbers.front();
  const slurm::Setting* name = slurm::find_setting(draft.plan.settings, "job-name");
  SlurmPlace place{number, folder.path(), output_of(draft.plan, number)};
  if (request.sweep) {
    place.output.clear();  // each row has its own
    place.spread = draft.spread.value_or(RowSpread());
    place.set_jobs(std::move(numbers));
    place.working = request.wish.folder;
    place.at_once = request.sweep->at_once;
    place.arguments = request.arguments;
    // Another array of the same rows has other tasks, and need not wait for what the first one
    // waited for.
    const auto first_only = [](const std::string& word) {
      return word == "array" || word == "dependency" || word == "begin";
    };
    for (const slurm::Setting& setting : draft.plan.settings)
      if (setting.line == 0 && !first_only(setting.name))
        place.settings.push_back(slurm::word_of(setting));
  }
  const jobs::KnownJob known{
      .id = id,
      .name = name == nullptr ? "" : name->value,
      .place = kPlace,
      .command = printable(shell_join(request.command), 500),
      .plan = request.sweep ? plan_text(place, request.sweep->table, request.sweep->rows)
                            : plan_text(place),
      .created_ms = world.unix_ms(),
      .status = {.state = jobs::JobState::queued}};
  const Status recorded = record(book, folder, known);
  if (!recorded && draft.has_several())
    return Failure(taken_back(recorded.error(), place.jobs(), world));
  LOCKSTEP_TRY(recorded);
  if (draft.has_several()) LOCKSTEP_TRY(release_arrays(place.jobs(), place.settings, world));
  return Submission{.script = std::move(draft.script),
                    .settings = std::move(draft.plan.settings),
                    .notes = std::move(draft.plan.notes),
                    .job = number,
                    .id = id,
                    .folder = place.folder,
                    .output = place.output};
}

std::vector<std::string> SlurmPlace::jobs() const {
  std::vector<std::string> all = {job};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void SlurmPlace::set_jobs(std::vector<std::string> jobs) {
  job = std::move(jobs.front());
  jobs.erase(jobs.begin());
  more = std::move(jobs);
}

std::optional<SlurmPlace> slurm_place(const jobs::KnownJob& job) {
  const nlohmann::json json = codec::parse_json(job.plan);
  if (!json.is_object() || !json.contains(kPlace) || !json[kPlace].is_object()) return std::nullopt;
  const nlohmann::json& place = json[kPlace];
  const auto text = [&](const char* name) { return codec::text_member(place, name); };
  SlurmPlace found{text("job"), text("folder"), text("output")};
  found.spread.first_row = row_count(codec::integer_member(place, "first_row"));
  if (const std::size_t rows = row_count(codec::integer_member(place, "array_rows")); rows > 0)
    found.spread.rows = rows;
  found.more = codec::texts_member(place, "more");
  found.working = text("working");
  found.settings = codec::texts_member(place, "settings");
  found.arguments = codec::texts_member(place, "arguments");
  if (const std::int64_t most = codec::integer_member(place, "at_once"); most > 0)
    found.at_once = most;
  if (const auto state = slurm_state(job, found))
    if (slurm::is_job_id(slurm::job_now(*state))) found.job = slurm::job_now(*state);
  return found;
}

std::optional<slurm::BatchState> slurm_state(const jobs::KnownJob& job, const SlurmPlace& place) {
  if (!job.nodes.empty() || place.folder.empty()) return std::nullopt;
  auto state = slurm::JobFolder(place.folder).state();
  return state ? std::optional(std::move(*state)) : std::nullopt;
}

namespace {

// Returns whether Slurm gave this id to the job, to an earlier job of the same chain, or to an
// array of the same sweep.
bool has_number(const jobs::KnownJob& job, const std::string& word) {
  const auto place = slurm_place_here(job);
  if (place && std::find(place->more.begin(), place->more.end(), word) != place->more.end())
    return true;
  const auto state = place ? slurm_state(job, *place) : std::nullopt;
  return state && state->chain &&
         (place->job == word || state->job == word ||
          std::find(state->jobs.begin(), state->jobs.end(), word) != state->jobs.end());
}

}  // namespace

bool begins_only(const jobs::KnownJob& job, const std::string& word) {
  const auto place = slurm_place(job);
  return job.id != word && job.name != word && job.id.starts_with(word) &&
         (!place || place->job != word) && !has_number(job, word);
}

Result<jobs::KnownJob> find_job(const jobs::JobBook& book, const std::string& word) {
  constexpr std::size_t kMostLookedAt = 200;
  auto job = book.find(word);
  // A number may be Slurm's, however many ids begin with it.
  if (!slurm::is_job_id(word) || (job && !begins_only(*job, word))) return job;
  LOCKSTEP_TRY_ASSIGN(auto known, book.list(kMostLookedAt));
  for (jobs::KnownJob& each : known)
    if (has_number(each, word)) return std::move(each);
  return job;
}

std::optional<SlurmPlace> slurm_place_here(const jobs::KnownJob& job) {
  return job.nodes.empty() ? slurm_place(job) : std::nullopt;
}

Result<std::string> call_sbatch(const SbatchCall& call, const slurm::JobFolder& folder,
                                const SlurmWorld& world) {
  return hand_over(call, folder, world);
}

// sweep_of() reads the rows as it reads those of a job on hosts.
std::string plan_text(const SlurmPlace& place, const rows::Table& table,
                      const std::vector<std::size_t>& rows) {
  nlohmann::ordered_json json{{kPlace,
                               {{"job", place.job},
                                {"folder", place.folder},
                                {"output", place.output},
                                {"first_row", place.spread.first_row},
                                {"array_rows", place.spread.rows},
                                {"more", place.more},
                                {"working", place.working},
                                {"settings", place.settings},
                                {"arguments", place.arguments}}},
                              {"spec",
                               {{"run", {"--sweep-only=" + rows::print_row_set(rows)}},
                                {"env", {"LOCKSTEP_SWEEP_TABLE=" + rows::print_csv(table)}}}}};
  if (place.at_once) json[kPlace]["at_once"] = *place.at_once;
  return codec::print_json(json);
}

std::string plan_text(const SlurmPlace& place) {
  return codec::print_json(nlohmann::ordered_json{
      {kPlace, {{"job", place.job}, {"folder", place.folder}, {"output", place.output}}}});
}

}  // namespace lockstep::jobs::on_slurm
