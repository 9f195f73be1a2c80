#include "cli/wheel_options.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::int64_t kMostJobs = 1024;

std::vector<Option> what_rows() {
  return {{.name = "ops",
           .field = into<&WheelOptions::ops>,
           .metavar = "LIST",
           .help = "DeepSpeed's ops to build, as cpu_adam,aio",
           .shown_default = "none"},
          {.name = "arch",
           .field = into<&WheelOptions::arch>,
           .metavar = "auto|LIST",
           .help = "GPU architectures, as 8.0;9.0, or GPUs, as V100;A100; auto: this node's",
           .shown_default = "auto",
           .env = "TORCH_CUDA_ARCH_LIST"},
          {.name = "isa",
           .field = into<&WheelOptions::isa>,
           .metavar = "LIST",
           .help = "CPU instruction sets of the nodes: x86-64-v2, v3, v4 or native; of several and "
                   "of this node's own the lowest counts",
           .shown_default = "x86-64-v3; with --slurm or --on the nodes' common features"},
          {.name = "jobs",
           .field = into<&WheelOptions::jobs>,
           .metavar = "N",
           .help = "compilers at once",
           .shown_default = "$MAX_JOBS, else 1 for each CPU, as memory allows",
           .letter = 'j'},
          {.name = "python",
           .field = into<&WheelOptions::python>,
           .metavar = "PATH",
           .help = "the target Python, with PyTorch, pip and setuptools",
           .shown_default = "the project's environment, else python3"}};
}

std::vector<Option> result_rows() {
  return {
      {.name = "out",
       .field = into<&WheelOptions::out>,
       .metavar = "DIR",
       .help = "copy the wheel and the manifest there",
       .letter = 'o'},
      {.name = "print",
       .field = into<&WheelOptions::print>,
       .help = "show the plan and build nothing"},
      {.name = "force",
       .field = into<&WheelOptions::force>,
       .help = "build the wheel again, whatever is in the cache"},
      {.name = "drop",
       .field = into<&WheelOptions::drop>,
       .metavar = "KEY",
       .help = "remove the overlay of this key from this node"},
      {.name = "json", .field = into<&WheelOptions::json>, .help = "for programs: the manifest"},
      help_option(),
      version_option()};
}

std::vector<Option> where_rows() {
  return {{.name = "slurm",
           .field = into<&WheelOptions::slurm>,
           .help = "in a job on a node of this Slurm; other options, as -p gpu, go to sbatch"},
          {.name = "on",
           .field = into<&WheelOptions::on>,
           .metavar = "CLUSTER",
           .help = "on the first host of a cluster, or in a job of a cluster of Slurm's"}};
}

// Returns our row of a long or short option, or nullptr for an option of sbatch.
const Option* own_option(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  for (const Option* option : options_of(wheel_table())) {
    if (name == "--" + std::string(option->name)) return option;
    if (option->letter != 0 && word.size() >= 2 && word[0] == '-' && word[1] == option->letter)
      return option;
  }
  return nullptr;
}

Table make_wheel_table() {
  return {.program = "lockstep wheel",
          .summary = "Builds a wheel once, and prints the path.",
          .examples =
              "lockstep wheel deepspeed==0.16.5 --ops cpu_adam,async_io --arch '8.0;9.0'\n"
              "lockstep wheel ./my_extension -o dist\n"
              "lockstep wheel deepspeed@./DeepSpeed --ops cpu_adam --slurm -p gpu",
          .details =
              "The wheel fits the target's Python, PyTorch, CUDA, GPUs and CPUs. An earlier build\n"
              "is taken from the cache.\n"
              "\n"
              "SOURCE is a folder, a URL as git+https://HOST/PROJECT@REF, deepspeed,\n"
              "deepspeed==VERSION, deepspeed@DIR or deepspeed@URL.",
          .epilog =
              "lockstep install CLUSTER wheel:FILE --overlay puts the wheel on the nodes.\n"
              "Exit code: 0, 1 where the build fails, 2 for bad input.\n",
          .operands = Operands::names,
          .groups = {{"What is built", what_rows()},
                     {"Where", where_rows()},
                     {"The wheel", result_rows()}},
          .shown_names = "SOURCE"};
}

}  // namespace

const Table& wheel_table() {
  static const Table table = make_wheel_table();
  return table;
}

tl::expected<WheelWords, ParseFailure> read_wheel_words(const std::vector<std::string>& words,
                                                        const GetEnv& env) {
  WheelWords found;
  std::vector<std::string> own;
  const auto is = [&](std::string_view name) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return word == name || word.starts_with(std::string(name) + "=");
    });
  };
  const bool in_job = is("--slurm") || is("--on");
  for (std::size_t at = 0; at < words.size();) {
    const std::string& word = words[at];
    const Option* option = own_option(word);
    const bool begins = word.starts_with('-') && word.size() > 1;
    if (in_job && begins && option == nullptr && word != "--") {
      // An option that takes no value must not take the next word along: sbatch's reader would read
      // our --out=DIR as the beginning of --output.
      auto settings = slurm::read_settings(std::span(words).subspan(at, 1));
      const std::size_t most = std::min<std::size_t>(words.size() - at, 2);
      if (!settings) settings = slurm::read_settings(std::span(words).subspan(at, most));
      if (!settings) return tl::make_unexpected(ParseFailure{ExitCode::usage, settings.error()});
      const std::size_t taken = std::max<std::size_t>(settings->words, 1);
      found.sbatch.insert(found.sbatch.end(), settings->settings.begin(), settings->settings.end());
      at += taken;
      continue;
    }
    own.push_back(words[at++]);
    // Keep an option and its value together: sbatch must not get a value that begins with '-'.
    const bool takes = option != nullptr && option->kind != Kind::flag &&
                       word.find('=') == std::string::npos && (word[1] == '-' || word.size() == 2);
    if (takes && at < words.size()) own.push_back(words[at++]);
  }
  auto parsed = parse_options(wheel_table(), own, env);
  if (!parsed) return tl::make_unexpected(parsed.error());
  found.own = std::move(*parsed);
  return found;
}

Result<WheelOptions> wheel_options(const WheelWords& words) {
  const Parsed& parsed = words.own;
  WheelOptions options;
  fill(wheel_table(), parsed, options);
  if (options.drop) {
    if (!parsed.names.empty())
      return fail(Errc::invalid_input, "--drop is given a key and builds nothing");
    return options;
  }
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "nothing to build is named",
                "write lockstep wheel deepspeed==0.16.5 --ops cpu_adam, or a folder");
  if (parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(parsed.names[1])));
  if (parsed.has("jobs") && (options.jobs < 1 || options.jobs > kMostJobs))
    return fail(Errc::invalid_input,
                fmt::format("--jobs must be from 1 to {} (got {})", kMostJobs, options.jobs));
  options.source = parsed.names[0];
  options.settings = words.sbatch;
  if (options.slurm && options.on)
    return fail(Errc::invalid_input, "--slurm and --on exclude each other",
                "--slurm is for this machine's Slurm, --on for a cluster of lockstep");
  if (options.print && (options.slurm || options.on))
    return fail(Errc::invalid_input, "--print shows the plan for this machine only",
                "run the command on a node: srun lockstep wheel --print ...");
  return options;
}

}  // namespace lockstep::cli
