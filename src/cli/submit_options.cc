#include "cli/submit_options.h"

#include "base/text.h"
#include "cli/remote_options.h"
#include "cli/run_options.h"
#include "cli/sweep_options.h"
#include "slurm/pyxis_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::string_view kNoLimit = "no-limit";
// Options of `lockstep run` that choose hosts or wait for hosts. In a Slurm job Slurm does both.
constexpr std::array<std::string_view, 7> kNotOfJobs = {
    "hostfile", "include", "cwd", "detach", "queue", "mixed-hosts", "gpus-per-job"};

// Returns the options for a submission on a login host. Their meaning is that of `lockstep run`.
Group login_rows() {
  constexpr std::array<std::string_view, 9> kNames = {
      "user", "key-path", "jump", "sync", "force", "install", "venv", "conda", "system"};
  Group group{
      "From elsewhere",
      {{.name = "on",
        .field = into<&RemoteOptions::on>,
        .metavar = "CLUSTER|HOST",
        .help =
            "submit on this login host: a cluster added with --slurm, or a host; see docs/slurm.md",
        .shapes_job = true}}};
  for (Option& row : remote_rows())
    if (std::find(kNames.begin(), kNames.end(), row.name) != kNames.end()) {
      row.own = false;
      group.options.push_back(std::move(row));
    }
  return group;
}

// Returns the options of a sweep, whose rows are the tasks of an array job.
Group sweep_rows_on_slurm() {
  Group group = sweep_group();
  std::erase_if(group.options, [](const Option& each) { return each.name == "gpus-per-job"; });
  for (Option& each : group.options) {
    if (each.name == "sweep")
      each.help =
          "submit the command once for each value, as tasks of array jobs, {NAME} being the "
          "value in the script's arguments, and LOCKSTEP_SWEEP_NAME in its environment; 0-4 is "
          "0,1,2,3,4; given again: every combination; --print prints the rows";
    if (each.name == "at-once") each.help = "rows that run at once, as % in Slurm's --array";
  }
  return group;
}

// Options about the job, and about what the command does after the submission.
std::vector<Option> job_rows() {
  return {
      {.name = "spare",
       .field = into<&SubmitOptions::spare>,
       .metavar = "N",
       .help = "nodes on top of --nodes, which wait to replace a failed node",
       .shown_default = "0"},
      {.name = "min-nodes",
       .field = into<&SubmitOptions::min_nodes>,
       .metavar = "N",
       .help = "go on with so few when nodes are lost and no spare is left",
       .shown_default = "--nodes"},
      {.name = "chain",
       .field = into<&SubmitOptions::chain>,
       .metavar = "[N]",
       .help = "at the time limit and when preempted the job goes on, queued again "
               "or as a new job; at most N times for the time limit"},
      {.name = "name",
       .field = into<&SubmitOptions::name>,
       .metavar = "NAME",
       .help = "of the job; the same as --job-name",
       .shown_default = "the script's"},
      {.name = "print",
       .field = into<&SubmitOptions::print>,
       .help = "show the script and submit nothing"},
      {.name = "follow",
       .field = into<&SubmitOptions::follow>,
       .help = "print the job's output until the job ends"},
      {.name = "fold",
       .field = into<&SubmitOptions::fold>,
       .metavar = "WHEN",
       .help = "for --follow, not the output file: show equal lines of ranks once; "
               "auto: on a terminal",
       .shown_default = "auto",
       .choices = {"auto", "always", "never"}},
      {.name = "wait",
       .field = into<&SubmitOptions::wait>,
       .help = "return when the job has ended"},
  };
}

// Options about the nodes: their checks, and the files that are brought to them.
std::vector<Option> node_rows() {
  return {
      {.name = "no-check",
       .field = into<&SubmitOptions::no_check>,
       .help = "submit whatever lockstep check finds"},
      {.name = "preflight",
       .field = into<&SubmitOptions::preflight>,
       .metavar = "HOW",
       .help = "the nodes' checks before the ranks start; quick: all but the "
               "ranks' Python and nvidia-smi",
       .shown_default = "full",
       .choices = {"full", "quick", "off"}},
      {.name = "preflight-import",
       .field = into<&SubmitOptions::preflight_import>,
       .metavar = "NAME,...",
       .help = "modules that every node must load"},
      {.name = "use-bad-nodes",
       .field = into<&SubmitOptions::use_bad_nodes>,
       .help = "also use nodes with recent failures"},
      {.name = "binary",
       .field = into<&SubmitOptions::binary>,
       .metavar = "HOW",
       .help = "shared: all nodes see the home; sbcast: Slurm brings lockstep to "
               "their /tmp",
       .shown_default = "auto: by the home's file system",
       .choices = {"auto", "shared", "sbcast"}},
      {.name = "wheel",
       .field = into<&SubmitOptions::wheels>,
       .metavar = "FILE|wheel:KEY",
       .help = "a wheel that every node gets before the ranks start, first on "
               "PYTHONPATH; may be repeated"},
      {.name = "wheel-place",
       .field = into<&SubmitOptions::wheel_place>,
       .metavar = "DIR",
       .help = "folder of the nodes' own disks where wheels come to",
       .shown_default = "/tmp"},
      {.name = "json", .field = into<&SubmitOptions::json>, .help = "for programs"},
      help_option(),
      version_option(),
  };
}

Table make_table() {
  Table table = {
      .program = "lockstep submit",
      .summary = "Submits a training command to Slurm.",
      .examples =
          "lockstep submit -N 2 --gpus-per-node 8 --time 20:00:00 -- train.py --lr 0.1\n"
          "lockstep submit -N 2 --spare 1 -p gpu -- torchrun --max-restarts 3 train.py\n"
          "lockstep submit old_launch.slurm ARGS",
      .details =
          "Writes the batch script, checks it, and calls sbatch; --print only shows the\n"
          "script. One agent runs on every node and starts the ranks there. A spare node\n"
          "inside of the allocation replaces a node that dies.",
      .epilog =
          "A batch script of your own runs unchanged; Lockstep takes the place of the script's\n"
          "launchers.\n"
          "Takes all options of sbatch, and the long options of lockstep run that\n"
          "sbatch does not have. Tasks and GPUs are counted as with srun: 8 GPUs or 8 tasks\n"
          "per node are 8 ranks. Exit code: with --wait or --follow the job's: the code\n"
          "of the worker that failed first, 124 if the time limit stopped the job, 125 if too\n"
          "few nodes were fit; else 0 once the job is submitted, 1 where sbatch refused the\n"
          "job, 2 for bad input, 255 where the host of --on was not reached.\n",
      .operands = Operands::command,
      .groups = {{"Options", job_rows()}},
      .shown_names = "[--] COMMAND [ARGUMENT ...] | SCRIPT [ARGUMENT ...]"};
  for (std::vector<Option> more : {node_rows(), variable_rows()})
    for (Option& row : more)
      table.groups[0].options.push_back(std::move(row));
  table.groups.push_back(sweep_rows_on_slurm());
  table.groups.push_back(login_rows());
  return table;
}

// Returns whether an option concerns only this machine. The login host receives the variables and
// the folder over stdin, where no other user can read them.
bool is_for_this_end(std::string_view name) {
  constexpr std::array<std::string_view, 5> kHere = {"print", "follow", "fold", "wait", "json"};
  const auto has = [&](const std::vector<Option>& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Option& row) { return row.name == name; });
  };
  return std::find(kHere.begin(), kHere.end(), name) != kHere.end() || has(variable_rows()) ||
         has(login_rows().options);
}

const Option* option_of(const Table& table, std::string_view name) {
  for (const Option* option : options_of(table))
    if (option->name == name) return option;
  return nullptr;
}

// Reads the words from the front and sorts each option by its owner. Keeps options as typed, since
// the login host and the job's nodes parse them again.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  Status read() {
    while (at_ < words_.size() && words_[at_].starts_with('-') && words_[at_] != "-") {
      if (words_[at_] == "--") {
        ++at_;
        dashes = true;
        break;
      }
      LOCKSTEP_TRY(take_option());
    }
    command.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return {};
  }

  std::vector<std::string> own;
  std::vector<std::string> run;
  std::vector<std::string> command;
  std::vector<std::string> there;
  bool dashes = false;
  std::vector<slurm::Setting> sbatch;

 private:
  Status take_option() {
    const std::string& word = words_[at_];
    // Short options are sbatch's, but -h must print the help of `lockstep submit`.
    if (word == "-h") return take_words(own, 1);
    if (word.starts_with("--")) {
      std::string name = word.substr(2, word.find('=') - 2);
      // `lockstep run` takes both spellings, sbatch only dashes.
      std::replace(name.begin(), name.end(), '_', '-');
      if (word == "--chain") return take_chain();
      if (const Option* option = option_of(submit_table(), name))
        return take(own, *option, !is_for_this_end(option->name));
      if (name == "container-image") return take_image();
      // sbatch's --container is for a site's own OCI runtime. The options of pyxis with these names
      // mean the same.
      if (const Option* option = option_of(run_table(), name);
          option != nullptr && name.starts_with("container"))
        return take(run, *option, true);
      if (!slurm::find_sbatch_option(name)) {
        if (std::find(kNotOfJobs.begin(), kNotOfJobs.end(), name) != kNotOfJobs.end())
          return fail(Errc::invalid_input, "--" + name + " is not for jobs of Slurm's",
                      "lockstep submit --help says what is");
        if (const Option* option = option_of(run_table(), name); option != nullptr)
          return take(run, *option, true);
      }
    }
    return take_sbatch();
  }

  // Reads "--chain" or "--chain N". No other option has an optional value in a word of its own, so
  // the table's parser gets --chain=N.
  Status take_chain() {
    const bool number = at_ + 1 < words_.size() && parse_int(words_[at_ + 1]);
    const std::size_t before = at_;
    own.emplace_back("--chain=" + (number ? words_[at_ + 1] : std::string(kNoLimit)));
    at_ += number ? 2 : 1;
    tell_there(before);
    return {};
  }

  // Reads pyxis' "--container-image X".
  Status take_image() {
    const std::string& word = words_[at_];
    const std::size_t equals = word.find('=');
    const std::size_t before = at_;
    at_ += equals == std::string::npos ? 2 : 1;
    if (at_ > words_.size())
      return fail(Errc::invalid_input, "--container-image needs the name of an image");
    const std::string value =
        equals == std::string::npos ? words_[at_ - 1] : word.substr(equals + 1);
    run.push_back("--container=" + slurm::image_of_pyxis(value));
    tell_there(before);
    return {};
  }

  Status take(std::vector<std::string>& to, const Option& option, bool is_told_there) {
    const bool alone = option.kind == Kind::flag || words_[at_].find('=') != std::string::npos;
    const std::size_t before = at_;
    LOCKSTEP_TRY(take_words(to, alone ? 1 : 2));
    if (is_told_there) tell_there(before);
    return {};
  }

  void tell_there(std::size_t from) {
    there.insert(there.end(), words_.begin() + static_cast<std::ptrdiff_t>(from),
                 words_.begin() + static_cast<std::ptrdiff_t>(at_));
  }

  Status take_words(std::vector<std::string>& to, std::size_t count) {
    for (; count > 0 && at_ < words_.size(); --count)
      to.push_back(words_[at_++]);
    return {};
  }

  // Passes one option to sbatch's reader, with the next word, which may be the option's value.
  Status take_sbatch() {
    const std::size_t most = std::min<std::size_t>(words_.size() - at_, 2);
    std::vector<std::string> some(words_.begin() + static_cast<std::ptrdiff_t>(at_),
                                  words_.begin() + static_cast<std::ptrdiff_t>(at_ + most));
    // sbatch stops reading at the first word that is not an option. A second word that is an option
    // gets a turn of its own.
    if (some.size() == 2 && some[1].starts_with('-') && some[1].size() > 1) {
      const auto alone = slurm::read_settings(std::span(some).first(1));
      if (alone) some.pop_back();
    }
    LOCKSTEP_TRY_ASSIGN(const auto settings, slurm::read_settings(some));
    sbatch.insert(sbatch.end(), settings.settings.begin(), settings.settings.end());
    const std::size_t before = at_;
    at_ += std::max<std::size_t>(settings.words, 1);
    tell_there(before);
    return {};
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
};

}  // namespace

const Table& submit_table() {
  static const Table table = make_table();
  return table;
}

std::string needs_login(const Parsed& parsed) {
  for (const Option& option : login_rows().options)
    if (parsed.has(option.name)) return "--" + std::string(option.name);
  return {};
}

tl::expected<SubmitWords, ParseFailure> read_submit_words(const std::vector<std::string>& words,
                                                          const GetEnv& env) {
  Reader reader(words);
  if (const Status read = reader.read(); !read)
    return tl::make_unexpected(ParseFailure{ExitCode::usage, read.error()});
  SubmitWords found;
  auto own = parse_options(submit_table(), reader.own, env);
  if (!own) return tl::make_unexpected(own.error());
  found.own = std::move(*own);
  found.sbatch = std::move(reader.sbatch);
  found.run = std::move(reader.run);
  found.command = std::move(reader.command);
  found.there = std::move(reader.there);
  found.dashes = reader.dashes;
  return found;
}

Result<std::optional<int>> chain_of(const SubmitOptions& options) {
  constexpr int kMost = 10'000;
  if (!options.chain) return std::optional<int>();
  if (*options.chain == kNoLimit) return std::optional(0);
  const auto most = parse_int(*options.chain);
  if (!most || *most < 1 || *most > kMost)
    return fail(Errc::invalid_input,
                fmt::format("--chain must be a number from 1 to {} (got {})", kMost,
                            printable(*options.chain, 40)),
                "--chain alone has no limit");
  return std::optional(static_cast<int>(*most));
}

}  // namespace lockstep::cli
