// lockstep submit: makes a Slurm job of a training command or of a user's own batch script, and
// submits the job on this machine or on a login host.
#include "cli/submit.h"

#include "base/environment.h"
#include "base/text.h"
#include "cli/behind_script.h"
#include "cli/run_options.h"
#include "cli/subcommand.h"
#include "cli/submit_accelerate.h"
#include "cli/submit_on_login.h"
#include "cli/submit_options.h"
#include "cli/sweep_options.h"
#include "container/enter.h"
#include "hosts/variables.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/array_submit.h"
#include "jobs/on_slurm/job_wheels.h"
#include "jobs/on_slurm/script_array.h"
#include "jobs/on_slurm/slurm_bad_nodes.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "launchers/launch_words.h"
#include "proc/signals.h"
#include "slurm/check_run.h"
#include "slurm/job_script.h"
#include "slurm/old_script.h"
#include "slurm/pyxis_image.h"
#include "slurm/sbatch_file.h"
#include "slurm/sbatch_options.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kProgram = "lockstep submit";

ParseResult read_words(const Args& words, const GetEnv& env) {
  auto found = read_submit_words(words, env);
  if (!found) return tl::make_unexpected(found.error());
  return std::move(found->own);
}

// The command line, checked and converted to a request.
struct Asked {
  SubmitOptions options;
  bool own_script = false;  // the command is the user's own batch script
  jobs::on_slurm::SlurmRequest request;
  std::vector<std::string> notes;
};

// Returns the text of the batch script that the first word names; nullopt: the words are a command.
// After "--" the words are always a command.
Result<std::optional<std::string>> batch_script_of(const SubmitWords& words) {
  struct stat info {};
  const std::string& path = words.command.front();
  if (words.dashes || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  // read_file() cuts the text at the limit. Read a byte more than Slurm takes, so that the check
  // still sees that a script is too long.
  LOCKSTEP_TRY_ASSIGN(std::string text, io::read_file(path, slurm::kMostScriptBytes + 1));
  if (!slurm::is_batch_script(path, text)) return std::nullopt;
  return text;
}

// Makes the request submit the user's script. The last setting of a name counts, so the script's
// settings come first and the command line's override them.
Status take_script(const SubmitWords& words, std::string text, Asked& asked) {
  jobs::on_slurm::SlurmRequest& request = asked.request;
  slurm::SbatchFile file = slurm::read_sbatch_file(text);
  file.settings.insert(file.settings.end(), request.wish.settings.begin(),
                       request.wish.settings.end());
  request.wish.settings = std::move(file.settings);
  request.wish.old_script = true;
  request.script = std::move(text);
  request.run = words.run;
  request.arguments.assign(words.command.begin() + 1, words.command.end());
  request.wish.name = std::filesystem::path(words.command.front()).filename().string();
  asked.own_script = true;
  return {};
}

// Converts accelerate's words on this machine if possible. Otherwise the job becomes a script of
// one line, and the job's first node asks its accelerate.
Status take_accelerate(const SubmitWords& words, launchers::Launch& launch, Asked& asked) {
  const slurm::Setting* nodes = slurm::find_setting(words.sbatch, "nodes");
  LOCKSTEP_TRY_ASSIGN(
      auto known, accelerate_here(launch, nodes == nullptr ? 1 : slurm::number_of(nodes->value)));
  if (known) {
    launch = std::move(*known);
    return {};
  }
  jobs::on_slurm::SlurmRequest& request = asked.request;
  request.wish.old_script = true;
  request.script = accelerate_script(words.command);
  request.run = words.run;
  const auto program = std::find_if(launch.run.begin(), launch.run.end(), [](const auto& word) {
    return !word.starts_with('-') && word.ends_with(".py");
  });
  request.wish.name = program == launch.run.end()
                          ? "accelerate"
                          : std::filesystem::path(*program).filename().string();
  asked.notes.emplace_back("the first node's accelerate will interpret these words");
  return {};
}

// Returns the base name of the training script, because sbatch also names a job after its script.
std::string name_of(const std::vector<std::string>& run) {
  auto script = std::find(run.begin(), run.end(), "--");
  if (script == run.end())
    script = std::find_if(run.begin(), run.end(),
                          [](const std::string& word) { return !word.starts_with('-'); });
  else
    ++script;
  return script == run.end() ? "lockstep" : std::filesystem::path(*script).filename().string();
}

// Returns the options of slurm-node, which every node of the job gets before `lockstep run`'s.
Result<std::vector<std::string>> node_words(const SubmitOptions& options) {
  std::vector<std::string> words;
  if (options.preflight) words = {"--preflight", *options.preflight};
  if (!options.preflight_import) return words;
  for (const std::string& name : split(*options.preflight_import, ','))
    if (name.empty() || name.starts_with('-') || name != printable(name))
      return fail(Errc::invalid_input,
                  fmt::format("--preflight-import must name a module (got '{}')", printable(name)),
                  "give names, separated by commas: torch,deepspeed");
  if (options.preflight.value_or("full") != "full")
    return fail(Errc::invalid_input,
                "--preflight-import needs --preflight full: no Python is started otherwise");
  words.insert(words.end(), {"--import", *options.preflight_import});
  return words;
}

// Notes options behind the script, which are the script's own there.
void note_behind_script(const SubmitWords& words, Asked& asked) {
  Parsed behind = words.own;
  behind.dashes = words.dashes;
  behind.script = words.command.front();
  behind.script_args.assign(words.command.begin() + 1, words.command.end());
  if (std::string hint = behind_script_hint(submit_table(), behind); !hint.empty())
    asked.notes.push_back(std::move(hint));
}

// Refuses options and variables by which pyxis would run the whole batch script in the image: srun,
// which starts the agents, is absent there. Drops options that hold in any case: only pyxis makes
// them known to sbatch. here: false if sbatch does not have this environment.
Status refuse_pyxis(bool here, std::vector<slurm::Setting>& settings) {
  for (const char* name : {"PYXIS_CONTAINER_IMAGE", "PYXIS_CONTAINER_NAME"})
    if (here && !env_text(name).empty())
      return fail(Errc::invalid_input,
                  fmt::format("{} is set, by which pyxis would run the script itself in the image, "
                              "where srun is absent",
                              name),
                  "unset it and give lockstep submit --container-image, which runs the ranks in "
                  "the image");
  std::erase_if(settings, [](const slurm::Setting& each) {
    return each.line == 0 && slurm::is_always_so(each.name);
  });
  for (const slurm::Setting& each : settings) {
    const auto option = slurm::find_sbatch_option(each.name);
    if (!option || !(*option)->plugin || slurm::is_always_so(each.name)) continue;
    const std::string where = each.line > 0 ? fmt::format("line {}: #SBATCH ", each.line) : "";
    if (each.name == "container-image")
      return fail(Errc::invalid_input,
                  fmt::format("{}--container-image={} would run the script itself in the image, "
                              "where srun is absent",
                              where, printable(each.value, 200)),
                  "leave the line out and give lockstep submit --container-image, which runs the "
                  "ranks in the image");
    return fail(
        Errc::invalid_input,
        fmt::format("{}--{} is pyxis', and Lockstep starts the container itself", where, each.name),
        "leave it out; docs/containers.md says what the container has");
  }
  return {};
}

// Gives the job the name of --name.
Status take_name(Asked& asked) {
  if (!asked.options.name) return {};
  slurm::JobWish& wish = asked.request.wish;
  // --name replaces --job-name of the script's #SBATCH lines (line > 0), but contradicts --job-name
  // on the command line.
  std::erase_if(wish.settings, [](const slurm::Setting& each) {
    return each.name == "job-name" && each.line > 0;
  });
  wish.name = *asked.options.name;
  if (slurm::find_setting(wish.settings, "job-name") != nullptr)
    return fail(Errc::invalid_input, "--name and --job-name are the same", "give one of them");
  return {};
}

// Takes the options about wheels, the binary and the nodes. here: as for asked_of().
Status take_options(bool here, Asked& asked) {
  const SubmitOptions& options = asked.options;
  jobs::on_slurm::SlurmRequest& request = asked.request;
  if (options.min_nodes) request.min_nodes = static_cast<int>(*options.min_nodes);
  if (here) {
    LOCKSTEP_TRY_ASSIGN(request.wheels,
                        jobs::on_slurm::find_wheels(options.wheels, request.wish.folder));
  }
  request.wheel_place = options.wheel_place;
  if (!request.wheel_place.starts_with('/'))
    return fail(Errc::invalid_input,
                fmt::format("--wheel-place must be an absolute path (got '{}')",
                            printable(request.wheel_place, 100)));
  using Binary = jobs::on_slurm::SlurmRequest::Binary;
  if (options.binary == "shared") request.binary = Binary::shared;
  if (options.binary == "sbcast") request.binary = Binary::carried;
  LOCKSTEP_TRY_ASSIGN(request.node, node_words(options));
  // A user's own script starts the steps, so request.node does not reach slurm-node. The variable
  // does.
  if (request.script && options.preflight)
    request.env.push_back("LOCKSTEP_PREFLIGHT=" + *options.preflight);
  return {};
}

// Takes the rows of a sweep, each of which becomes a task of an array job, or the tasks of a user's
// own script.
Status take_sweep(const Parsed& own, Asked& asked) {
  SweepOptions options;
  fill(submit_table(), own, options);
  LOCKSTEP_TRY_ASSIGN(auto rows, sweep_rows(options));
  const slurm::Setting* array = slurm::find_setting(asked.request.wish.settings, "array");
  if (!rows && asked.own_script && array != nullptr) {
    LOCKSTEP_TRY_ASSIGN(asked.request.sweep, jobs::on_slurm::sweep_of_array(array->value));
  }
  if (!rows) return {};
  asked.request.sweep = {
      .table = std::move(rows->table), .rows = std::move(rows->chosen), .at_once = options.at_once};
  return {};
}

// Returns the chosen runtime and the rows as comments: the output of --print must stay a script.
Result<std::string> comments_of(const jobs::on_slurm::SlurmRequest& request) {
  if (request.script) return std::string();
  const auto parsed = parse_options(run_table(), request.run, env_variable);
  if (!parsed) return Failure(parsed.error().error);
  std::string text;
  if (const auto image = parsed->text("container"))
    text += fmt::format("# The container: {}\n",
                        container::choice_on_nodes(*image, request.wish.folder));
  if (!request.sweep) return text;
  text += "# The rows:\n";
  for (const std::string& line :
       split(sweep_text({request.sweep->table, request.sweep->rows}, *parsed), '\n'))
    if (!line.empty()) text += "# " + line + "\n";
  return text;
}

Result<std::vector<std::string>> variables_of(const SubmitOptions& options) {
  const VariableOptions& given = options.variables;
  return hosts::variables_of({.env = given.env, .files = given.env_files, .secrets = given.secrets},
                             hosts::own_variable);
}

// Checks the command line and builds the request. here: false if a login host submits the job; the
// paths of --wheel are then paths there.
Result<Asked> asked_of(const Call& call, bool here = true) {
  Asked asked;
  auto words = read_submit_words(call.words, env_variable);
  if (!words) return Failure(words.error().error);
  fill(submit_table(), words->own, asked.options);
  fill(submit_table(), words->own, asked.options.variables);
  if (words->command.empty())
    return fail(Errc::invalid_input, "no command is given",
                "lockstep submit -N 2 -- train.py ARGS");
  note_behind_script(*words, asked);
  LOCKSTEP_TRY_ASSIGN(auto script, batch_script_of(*words));
  launchers::Launch launch;
  if (!script) {
    LOCKSTEP_TRY_ASSIGN(launch,
                        launchers::read_launch(words->command, {.placed_by_scheduler = true}));
    if (launch.launcher == launchers::Launcher::accelerate)
      LOCKSTEP_TRY(take_accelerate(*words, launch, asked));
  }
  jobs::on_slurm::SlurmRequest& request = asked.request;
  std::error_code error;
  request.wish.folder = std::filesystem::current_path(error);
  if (error) return fail(Errc::not_found, "the current directory no longer exists");
  request.wish.settings = std::move(words->sbatch);
  request.wish.spares = static_cast<int>(asked.options.spare);
  LOCKSTEP_TRY_ASSIGN(request.wish.chain, chain_of(asked.options));
  if (script)
    LOCKSTEP_TRY(take_script(*words, std::move(*script), asked));
  else if (!request.script)
    request.wish.name = name_of(launch.run);
  LOCKSTEP_TRY(take_name(asked));
  LOCKSTEP_TRY(refuse_pyxis(here, request.wish.settings));
  if (!request.script) {
    request.run = std::move(words->run);
    request.run.insert(request.run.end(), launch.run.begin(), launch.run.end());
  }
  request.command = std::move(words->command);
  LOCKSTEP_TRY_ASSIGN(request.env, variables_of(asked.options));
  request.env.insert(request.env.end(), launch.env.begin(), launch.env.end());
  LOCKSTEP_TRY(take_options(here, asked));
  LOCKSTEP_TRY(take_sweep(words->own, asked));
  asked.notes.insert(asked.notes.end(), launch.notes.begin(), launch.notes.end());
  return asked;
}

void tell_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    std::fprintf(stderr, "%s: note: %s\n", kProgram, printable(note, 1000).c_str());
}

// Prints a line for each finding. Returns whether the job may be submitted.
Result<bool> passes_check(const Asked& asked, const jobs::on_slurm::Submission& job) {
  if (asked.options.no_check) return true;
  slurm::CheckRequest request{.settings = job.settings,
                              .launch = asked.request.command,
                              .ask_slurm = !asked.options.print,
                              .lockstep_launches = true};
  if (asked.own_script) {
    request.script = asked.request.command.front();
    // run_check() reads the script's own #SBATCH lines (line > 0) from the script.
    std::erase_if(request.settings, [](const slurm::Setting& each) { return each.line > 0; });
  }
  LOCKSTEP_TRY_ASSIGN(const slurm::CheckReport report, slurm::run_check(request));
  for (const slurm::Finding& finding : report.findings)
    std::fprintf(stderr, "%s: %s\n", kProgram, printable(slurm::text_of(finding), 2000).c_str());
  return !report.has_errors();
}

Result<ExitCode> submit(const Call& call, const ForClient& client) {
  LOCKSTEP_TRY_ASSIGN(Asked asked, asked_of(call));
  asked.request.id = client.id;
  if (!client.folder.empty()) {
    asked.request.wish.folder = client.folder;
    asked.request.folder_is_here = false;
  }
  if (asked.request.sweep && asked.request.sweep->array.empty())
    asked.request.sweep->array_rows = jobs::on_slurm::ask_array_rows(slurm::run_here);
  // --print also works without Slurm: sbatch --test-only is called neither here nor by the check.
  if (!asked.options.use_bad_nodes && !asked.options.print) {
    const std::string note = jobs::on_slurm::leave_out_bad_nodes(asked.request.wish);
    if (!note.empty()) asked.notes.push_back(note);
  }
  // Check the job before anything is created for it.
  LOCKSTEP_TRY_ASSIGN(const auto preview, jobs::on_slurm::preview_slurm_job(asked.request));
  LOCKSTEP_TRY_ASSIGN(const bool passes, passes_check(asked, preview));
  if (asked.options.print) {
    const auto& job = preview;
    asked.notes.insert(asked.notes.end(), job.notes.begin(), job.notes.end());
    tell_notes(asked.notes);
    LOCKSTEP_TRY_ASSIGN(const std::string comments, comments_of(asked.request));
    std::fputs((job.script + comments).c_str(), stdout);
    return ExitCode::ok;
  }
  if (!passes) return ExitCode::failed;
  LOCKSTEP_TRY_ASSIGN(const auto job, jobs::on_slurm::submit_slurm_job(asked.request));
  asked.notes.insert(asked.notes.end(), job.notes.begin(), job.notes.end());
  tell_notes(asked.notes);
  LOCKSTEP_TRY_ASSIGN(const auto book, jobs::JobBook::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const jobs::KnownJob known, book.find(job.id));
  return tell_and_follow(
      book, known, {.name = known.name, .job = job.job, .output = job.output, .folder = job.folder},
      asked.options);
}

bool asked_for_sweep(const Parsed& own) {
  SweepOptions options;
  fill(submit_table(), own, options);
  return options.sweeps();
}

// Submits on the login host of --on and returns the exit code; nullopt: the job is for this
// machine.
Result<std::optional<ExitCode>> submit_elsewhere(const Call& call) {
  auto words = read_submit_words(call.words, env_variable);
  if (!words) return Failure(words.error().error);
  if (!words->own.has("on")) {
    const std::string lone = needs_login(words->own);
    if (lone.empty()) return std::optional<ExitCode>();
    return fail(Errc::invalid_input, lone + " needs --on");
  }
  if (asked_for_sweep(words->own))
    return fail(Errc::invalid_input, "--sweep does not go with --on HOST",
                "log in there, and run lockstep submit --sweep there");
  // Refuse wrong words here, before a log-in and a sync. The login host checks them again.
  LOCKSTEP_TRY_ASSIGN(const Asked asked, asked_of(call, false));
  if (asked.request.sweep)
    return fail(Errc::invalid_input, "a script with --array does not go with --on HOST",
                "log in there, and run lockstep submit there");
  LOCKSTEP_TRY_ASSIGN(const slurm::JobPlan plan, slurm::plan_job(asked.request.wish));
  if (asked.options.print && asked.request.script)
    return fail(Errc::invalid_input, "--print can't show the result of a script on another host",
                "leave --on out to see the result here");
  // The project is not on the login host before a submission, so the host's check of a preview
  // would miss its files. Check here; the host's preview runs with --no-check.
  if (asked.options.print)
    LOCKSTEP_TRY(passes_check(asked, {.script = {}, .settings = plan.settings, .notes = {}}));
  const slurm::Setting* name = slurm::find_setting(plan.settings, "job-name");
  LOCKSTEP_TRY_ASSIGN(auto env, variables_of(asked.options));
  return submit_on_login({.name = name == nullptr ? "" : name->value,
                          .words = *words,
                          .options = asked.options,
                          .env = std::move(env)});
}

Result<ExitCode> submit_command(const Call& call) {
  return submit_for(call, {});
}

}  // namespace

Result<ExitCode> submit_for(const Call& call, const ForClient& client) {
  // A client's job is always submitted on this host.
  if (client.id.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto code, submit_elsewhere(call));
    if (code) return *code;
  }
  return submit(call, client);
}

extern constinit const Subcommand kSubmit{.name = "submit",
                                          .summary = "submit a training command to Slurm",
                                          .table = submit_table,
                                          .read = read_words,
                                          .run = submit_command,
                                          .signals = Signals::blocked};

}  // namespace lockstep::cli
