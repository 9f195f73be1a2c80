#include "cli/hostfile_places.h"

#include "base/environment.h"
#include "cli/places.h"
#include "hosts/place.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "launchers/deepspeed_env.h"
#include "launchers/hostfile.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <unistd.h>

#include <filesystem>
#include <set>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;  // the limit of a hostfile and of .deepspeed_env

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Returns the variables that DeepSpeed's launcher takes to hosts. First come variables of this
// process with certain names, then the lines of .deepspeed_env in the home and in the current
// folder.
Result<std::vector<std::string>> deepspeed_variables() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (launchers::deepspeed_exports(text.substr(0, text.find('=')))) variables.emplace_back(text);
  }
  const std::string name = env_text("DS_ENV_FILE", ".deepspeed_env");
  // Both paths are the same file if the home is the current folder: read the file once.
  std::set<std::string> read;
  for (const std::string& folder : {io::home_folder(), std::string(".")}) {
    const auto path = std::filesystem::path(folder) / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    if (!read.insert(std::filesystem::canonical(path, error)).second) continue;
    LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(path, kMostBytes));
    auto lines = launchers::parse_deepspeed_env(text);
    if (!lines) return Failure(std::move(lines).error().within(path.string()));
    append(variables, std::move(*lines));
  }
  return variables;
}

// Returns the place of a host. A hostfile with localhost alone means this machine, without ssh: the
// machine need not run an sshd.
Result<hosts::HostPlace> place_of(const std::string& name, bool alone,
                                  const PlaceOptions& options) {
  if (alone && name == "localhost")
    return hosts::HostPlace{.name = name, .target = {}, .here = true};
  return hosts::place_of_host(name, {options.user, options.key_path, options.jump});
}

// Returns the chosen hosts of the hostfile. --nodes counts within them.
Result<ChosenPlaces> hostfile_places(const RemoteOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(*options.hostfile, kMostBytes));
  auto hosts = launchers::parse_hostfile(text);
  if (!hosts) return Failure(std::move(hosts).error().within(*options.hostfile));
  LOCKSTEP_TRY_ASSIGN(auto chosen, launchers::choose_slots(*hosts, options.include.value_or(""),
                                                           options.exclude.value_or("")));
  LOCKSTEP_TRY_ASSIGN(
      const auto numbers,
      hosts::parse_node_numbers(options.place.nodes.value_or("all"), chosen.hosts.size()));
  ChosenPlaces places{.notes = std::move(chosen.notes)};
  for (const std::size_t number : numbers) {
    const launchers::HostSlots& host = chosen.hosts[number];
    LOCKSTEP_TRY_ASSIGN(auto place, place_of(host.name, numbers.size() == 1, options.place));
    places.hosts.push_back(std::move(place));
    places.slots.push_back(launchers::slots_text(host.slots));
  }
  LOCKSTEP_TRY_ASSIGN(places.variables, deepspeed_variables());
  return places;
}

}  // namespace

Result<ChosenPlaces> chosen_places(const RemoteOptions& options) {
  if (options.on && options.hostfile)
    return fail(Errc::invalid_input, "--on and --hostfile both say where the job runs",
                "give one of them");
  if (options.hostfile) return hostfile_places(options);
  if (options.include || options.exclude)
    return fail(Errc::invalid_input, "--include and --exclude need --hostfile",
                "with --on use --nodes");
  ChosenPlaces places;
  // The course of a rented job rents and terminates machines itself. Take the rental's machines
  // without a check: places_of() would first make sure that they exist.
  LOCKSTEP_TRY_ASSIGN(places.hosts, options.hosts_gone ? rent::present_places(*options.on)
                                                       : places_of(*options.on, options.place));
  // Without this note the job would train on the login host without a word.
  if (places.hosts.front().login)
    places.notes.push_back(
        fmt::format("{0} is a Slurm cluster, and this job runs on its login host; lockstep submit "
                    "--on {0} is for the nodes",
                    *options.on));
  return places;
}

}  // namespace lockstep::cli
