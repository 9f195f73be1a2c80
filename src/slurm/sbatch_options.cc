#include "slurm/sbatch_options.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::slurm {
namespace {

// Merged from Slurm's own tables (slurm_opt.c) of all releases from 22.05 to 26.05. 23.11 removed
// --power. Since 25.05 --get-user-env takes no value, and since 25.11 --requeue takes one.
constexpr SbatchOption kOptions[] = {
    {"account", 'A', Takes::value},
    {"acctg-freq", 0, Takes::value},
    {"array", 'a', Takes::value},
    {"autocomplete", 0, Takes::value},
    {"batch", 0, Takes::value},
    {"bb", 0, Takes::value},
    {"bbf", 0, Takes::value},
    {"begin", 'b', Takes::value},
    {"chdir", 'D', Takes::value},
    {"cluster", 0, Takes::value, "clusters"},
    {"cluster-constraint", 0, Takes::value},
    {"clusters", 'M', Takes::value},
    {"comment", 0, Takes::value},
    {"consolidate-segments", 0, Takes::nothing},
    {"constraint", 'C', Takes::value},
    {"container", 0, Takes::value},
    {"container-entrypoint", 0, Takes::nothing, "", true},
    {"container-env", 0, Takes::value, "", true},
    {"container-id", 0, Takes::value},
    {"container-image", 0, Takes::value, "", true},
    {"container-mount-home", 0, Takes::nothing, "", true},
    {"container-mounts", 0, Takes::value, "", true},
    {"container-name", 0, Takes::value, "", true},
    {"container-readonly", 0, Takes::nothing, "", true},
    {"container-remap-root", 0, Takes::nothing, "", true},
    {"container-save", 0, Takes::value, "", true},
    {"container-type", 0, Takes::value},
    {"container-workdir", 0, Takes::value, "", true},
    {"container-writable", 0, Takes::nothing, "", true},
    {"context", 0, Takes::value},
    {"contiguous", 0, Takes::nothing},
    {"core-spec", 'S', Takes::value},
    {"cores-per-socket", 0, Takes::value},
    {"cpu-freq", 0, Takes::value},
    {"cpus-per-gpu", 0, Takes::value},
    {"cpus-per-task", 'c', Takes::value},
    {"deadline", 0, Takes::value},
    {"delay-boot", 0, Takes::value},
    {"dependency", 'd', Takes::value},
    {"distribution", 'm', Takes::value},
    {"error", 'e', Takes::value},
    {"exclude", 'x', Takes::value},
    {"exclusive", 0, Takes::maybe},
    {"export", 0, Takes::value},
    {"export-file", 0, Takes::value},
    {"external", 0, Takes::nothing},
    {"extra", 0, Takes::value},
    {"extra-node-info", 'B', Takes::value},
    {"get-user-env", 0, Takes::maybe},
    {"gid", 0, Takes::value},
    {"gpu-bind", 0, Takes::value},
    {"gpu-freq", 0, Takes::value},
    {"gpus", 'G', Takes::value},
    {"gpus-per-node", 0, Takes::value},
    {"gpus-per-socket", 0, Takes::value},
    {"gpus-per-task", 0, Takes::value},
    {"gres", 0, Takes::value},
    {"gres-flags", 0, Takes::value},
    {"help", 'h', Takes::nothing},
    {"hint", 0, Takes::value},
    {"hold", 'H', Takes::nothing},
    {"ignore-pbs", 0, Takes::nothing},
    {"input", 'i', Takes::value},
    {"job-name", 'J', Takes::value},
    {"kill-on-invalid-dep", 0, Takes::value},
    {"licenses", 'L', Takes::value},
    {"mail-type", 0, Takes::value},
    {"mail-user", 0, Takes::value},
    {"mcs-label", 0, Takes::value},
    {"mem", 0, Takes::value},
    {"mem-bind", 0, Takes::value},
    {"mem-per-cpu", 0, Takes::value},
    {"mem-per-gpu", 0, Takes::value},
    {"mem-update", 0, Takes::value},
    {"mincpus", 0, Takes::value},
    {"network", 0, Takes::value},
    {"nice", 0, Takes::maybe},
    {"no-container-entrypoint", 0, Takes::nothing, "", true},
    {"no-container-mount-home", 0, Takes::nothing, "", true},
    {"no-container-remap-root", 0, Takes::nothing, "", true},
    {"no-kill", 'k', Takes::maybe},
    {"no-requeue", 0, Takes::nothing},
    {"nodefile", 'F', Takes::value},
    {"nodelist", 'w', Takes::value},
    {"nodes", 'N', Takes::value},
    {"ntasks", 'n', Takes::value},
    {"ntasks-per-core", 0, Takes::value},
    {"ntasks-per-gpu", 0, Takes::value},
    {"ntasks-per-node", 0, Takes::value},
    {"ntasks-per-socket", 0, Takes::value},
    {"ntasks-per-tres", 0, Takes::value},
    {"oom-kill-step", 0, Takes::maybe},
    {"open-mode", 0, Takes::value},
    {"output", 'o', Takes::value},
    {"overcommit", 'O', Takes::nothing},
    {"oversubscribe", 's', Takes::nothing},
    {"parsable", 0, Takes::nothing},
    {"partition", 'p', Takes::value},
    {"power", 0, Takes::value},
    {"prefer", 0, Takes::value},
    {"priority", 0, Takes::value},
    {"profile", 0, Takes::value},
    {"propagate", 0, Takes::maybe},
    {"qos", 'q', Takes::value},
    {"quiet", 'Q', Takes::nothing},
    {"reboot", 0, Takes::nothing},
    {"requeue", 0, Takes::maybe},
    {"reservation", 0, Takes::value},
    {"resources", 0, Takes::value},
    {"resv-ports", 0, Takes::maybe},
    {"segment", 0, Takes::value},
    {"signal", 0, Takes::value},
    {"sockets-per-node", 0, Takes::value},
    {"spread-job", 0, Takes::nothing},
    {"spread-segments", 0, Takes::nothing},
    {"stepmgr", 0, Takes::nothing},
    {"switches", 0, Takes::value},
    {"tasks-per-node", 0, Takes::value, "ntasks-per-node"},
    {"test-only", 0, Takes::nothing},
    {"thread-spec", 0, Takes::value},
    {"threads-per-core", 0, Takes::value},
    {"time", 't', Takes::value},
    {"time-min", 0, Takes::value},
    {"tmp", 0, Takes::value},
    {"tres-bind", 0, Takes::value},
    {"tres-per-task", 0, Takes::value},
    {"uid", 0, Takes::value},
    {"usage", 0, Takes::nothing},
    {"use-min-nodes", 0, Takes::nothing},
    {"verbose", 'v', Takes::nothing},
    {"version", 'V', Takes::nothing},
    {"wait", 'W', Takes::nothing},
    {"wait-all-nodes", 0, Takes::value},
    {"wckey", 0, Takes::value},
    {"wrap", 0, Takes::value},
};

// Options only in srun, or different there.
constexpr SbatchOption kSrunOptions[] = {
    {"accel-bind", 0, Takes::value},
    {"async"},
    {"bcast", 0, Takes::maybe},
    {"bcast-exclude", 0, Takes::value},
    {"compress", 0, Takes::maybe},
    {"cpu-bind", 0, Takes::value},
    {"cpu_bind", 0, Takes::value},
    {"disable-status", 'X'},
    {"epilog", 0, Takes::value},
    {"exact"},
    {"external-launcher", 0, Takes::maybe},
    {"het-group", 0, Takes::value},
    {"ignore-signals", 0, Takes::value},
    {"immediate", 'I', Takes::maybe},
    {"interactive"},
    {"jobid", 0, Takes::value},
    {"kill-on-bad-exit", 'K', Takes::maybe},
    {"label", 'l'},
    {"mpi", 0, Takes::value},
    {"msg-timeout", 0, Takes::value},
    {"multi-prog"},
    {"no-allocate", 'Z'},
    {"overlap", 0, Takes::maybe},
    {"pack-group", 0, Takes::value},
    {"preserve-env", 'E'},
    {"prolog", 0, Takes::value},
    {"pty", 0, Takes::maybe},
    {"quit-on-interrupt"},
    {"relative", 'r', Takes::value},
    {"send-libs", 0, Takes::maybe},
    {"slurmd-debug", 0, Takes::value},
    {"task-epilog", 0, Takes::value},
    {"task-prolog", 0, Takes::value},
    {"threads", 'T', Takes::value},
    {"treewidth", 0, Takes::value},
    {"unbuffered", 'u'},
    {"wait", 'W', Takes::value},
    {"wait-for-children"},
    {"whole"},
    {"x11", 0, Takes::maybe},
};

enum class Tool : std::uint8_t { sbatch, srun };

std::vector<const SbatchOption*> options_of(Tool tool) {
  std::vector<const SbatchOption*> all;
  all.reserve(std::size(kOptions) + std::size(kSrunOptions));
  for (const SbatchOption& each : kOptions)
    // sbatch's --wait takes no value, srun's takes one.
    if (tool == Tool::sbatch || each.name != "wait") all.push_back(&each);
  if (tool == Tool::srun)
    for (const SbatchOption& each : kSrunOptions)
      all.push_back(&each);
  return all;
}

const SbatchOption* option_of_letter(std::span<const SbatchOption* const> options, char letter) {
  for (const SbatchOption* each : options)
    if (each->letter == letter && letter != 0) return each;
  return nullptr;
}

std::string_view usual_name(const SbatchOption& option) {
  return option.same_as.empty() ? option.name : option.same_as;
}

Failure no_option(std::string_view name) {
  std::vector<std::string> names;
  names.reserve(std::size(kOptions));
  for (const SbatchOption& each : kOptions)
    names.emplace_back(each.name);
  const auto meant = did_you_mean(name, names);
  return fail(Errc::not_found, fmt::format("sbatch has no option --{}", printable(name, 80)),
              meant ? fmt::format("did you mean --{}?", *meant) : "see man sbatch");
}

Result<const SbatchOption*> find_option(std::span<const SbatchOption* const> options,
                                        std::string_view name) {
  std::vector<const SbatchOption*> begins;
  for (const SbatchOption* each : options) {
    if (each->name == name) return each;
    // Abbreviations never mean an option of pyxis: sites without pyxis do not have it.
    if (each->name.starts_with(name) && !each->plugin) begins.push_back(each);
  }
  if (name.empty() || begins.empty()) return no_option(name);
  if (begins.size() == 1) return begins.front();
  std::vector<std::string> names;
  names.reserve(begins.size());
  for (const SbatchOption* each : begins)
    names.push_back(fmt::format("--{}", each->name));
  return fail(Errc::invalid_input,
              fmt::format("--{} may stand for {}", printable(name, 80), join(names, ", ")),
              "write the option in full");
}

// Reads the words in one pass. Errors go to `result_.problems`, and reading continues.
class Reader {
 public:
  Reader(Tool tool, std::span<const PlacedWord> words, UnknownOptions unknown)
      : options_(options_of(tool)), words_(words), unknown_(unknown) {}

  PlacedSettings read() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_].text;
      if (word.size() < 2 || word.front() != '-') break;
      line_ = words_[at_].line;
      ++at_;
      if (word == "--") break;
      if (word.starts_with("--")) {
        read_long(std::string_view(word).substr(2));
      } else {
        read_letters(std::string_view(word).substr(1));
      }
    }
    result_.words = at_;
    return std::move(result_);
  }

 private:
  void add(std::string_view name, std::optional<std::string> value, bool known = true) {
    const bool has_value = value.has_value();
    result_.settings.push_back({.name = std::string(name),
                                .value = std::move(value).value_or(""),
                                .has_value = has_value,
                                .line = line_,
                                .known = known});
  }

  void refuse(Error error) { result_.problems.push_back({line_, std::move(error)}); }

  void read_long(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = std::string(word.substr(equals + 1));
    auto found = find_option(options_, name);
    if (!found) {
      // An ambiguous option is refused in either mode, because sbatch refuses it, too.
      if (unknown_ == UnknownOptions::refuse || found.error().code != Errc::not_found) {
        found.error().code = Errc::invalid_input;
        return refuse(std::move(found).error());
      }
      if (!value && at_ < words_.size() && !words_[at_].text.starts_with("-"))
        value = words_[at_++].text;
      return add(name, std::move(value), false);
    }
    const SbatchOption& option = **found;
    if (option.takes == Takes::nothing && value)
      return refuse({Errc::invalid_input,
                     fmt::format("--{} takes no value, but is given '{}'", option.name,
                                 printable(*value, 80)),
                     fmt::format("write --{} alone", option.name), 0});
    if (option.takes == Takes::value && !value) {
      if (at_ == words_.size())
        return refuse({Errc::invalid_input, fmt::format("--{} is given no value", option.name),
                       fmt::format("write --{}=VALUE", option.name), 0});
      value = words_[at_++].text;
    }
    add(usual_name(option), std::move(value));
  }

  // Reads a group of letters: "-N2", "-HN2", "-H". The rest of a group is the value of an option
  // with a value.
  void read_letters(std::string_view letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const SbatchOption* option = option_of_letter(options_, letters[i]);
      if (option == nullptr) {
        refuse({Errc::invalid_input,
                fmt::format("sbatch has no option -{}", printable(letters.substr(i, 1))),
                "see man sbatch", 0});
        continue;
      }
      if (option->takes == Takes::nothing) {
        add(usual_name(*option), std::nullopt);
        continue;
      }
      const std::string_view rest = letters.substr(i + 1);
      if (!rest.empty()) return add(usual_name(*option), std::string(rest));
      // An optional value must be in the same word, as for getopt_long().
      if (option->takes == Takes::maybe) return add(usual_name(*option), std::nullopt);
      if (at_ == words_.size())
        return refuse({Errc::invalid_input, fmt::format("-{} is given no value", option->letter),
                       fmt::format("write --{}=VALUE", option->name), 0});
      return add(usual_name(*option), words_[at_++].text);
    }
  }

  std::vector<const SbatchOption*> options_;
  std::span<const PlacedWord> words_;
  UnknownOptions unknown_;
  std::size_t at_ = 0;
  int line_ = 0;
  PlacedSettings result_;
};

}  // namespace

std::span<const SbatchOption> sbatch_options() {
  return kOptions;
}

Result<const SbatchOption*> find_sbatch_option(std::string_view name) {
  return find_option(options_of(Tool::sbatch), name);
}

PlacedSettings read_placed_settings(std::span<const PlacedWord> words, UnknownOptions unknown) {
  return Reader(Tool::sbatch, words, unknown).read();
}

PlacedSettings read_srun_settings(std::span<const PlacedWord> words) {
  return Reader(Tool::srun, words, UnknownOptions::keep).read();
}

Result<ReadSettings> read_settings(std::span<const std::string> words, UnknownOptions unknown) {
  std::vector<PlacedWord> placed;
  placed.reserve(words.size());
  for (const std::string& each : words)
    placed.push_back({each, 0});
  PlacedSettings read = read_placed_settings(placed, unknown);
  if (!read.problems.empty()) return Failure(std::move(read.problems.front().error));
  return ReadSettings{std::move(read.settings), read.words};
}

std::string word_of(const Setting& setting) {
  return setting.has_value ? fmt::format("--{}={}", setting.name, setting.value)
                           : fmt::format("--{}", setting.name);
}

const Setting* find_setting(std::span<const Setting> settings, std::string_view name) {
  const Setting* found = nullptr;
  for (const Setting& each : settings)
    if (each.component == 0 && each.name == name) found = &each;
  return found;
}

}  // namespace lockstep::slurm
