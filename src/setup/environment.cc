#include "setup/environment.h"

#include "codec/json_fields.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "setup/places.h"

#include <array>
#include <utility>

namespace lockstep::setup {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kKinds = {"none", "venv", "conda", "system"};
constexpr std::size_t kMostBytes = 1U << 20;
constexpr std::size_t kMostLocal = 1000;

std::string folder_of_project(const std::string& plain) {
  return io::state_folder() + "/projects/" + key_of(plain);
}

std::string record_of_project(const std::string& plain) {
  return folder_of_project(plain) + "/environment.json";
}

std::string value_in(const std::vector<std::string>& env, std::string_view name) {
  for (const std::string& entry : env)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

std::string in_front(const std::string& first, const std::string& rest) {
  return rest.empty() ? first : first + ":" + rest;
}

// Returns nullopt if `plain` is not the top folder of a project with a recorded environment.
Result<std::optional<Environment>> environment_at(const std::string& plain) {
  const std::string path = record_of_project(plain);
  const auto bytes = io::read_file(path, kMostBytes);
  if (!bytes && bytes.error().code == Errc::not_found) return std::nullopt;
  if (!bytes) return Failure(bytes.error());
  const json record = codec::parse_json(*bytes, {.bytes = kMostBytes});
  if (!record.is_object())
    return fail(Errc::corrupt, path + " is damaged", "remove the file and install again");
  // key_of() keeps only a part of the path's digest, so make sure that the record is of this
  // folder.
  const auto folder = record.find("folder");
  if (folder == record.end() || *folder != plain) return std::nullopt;
  Environment found;
  if (!codec::read_fields(record, found, {.list = kMostLocal}))
    return fail(Errc::corrupt, path + " is damaged", "remove the file and install again");
  return found;
}

}  // namespace

void fields(codec::JsonFields& io, Environment& environment) {
  io("kind", environment.kind, kKinds);
  io("prefix", environment.prefix);
  io("python", environment.python);
  io("local", environment.local);
}

std::string_view kind_name(Environment::Kind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

Result<std::optional<Environment>> find_environment(const std::string& folder) {
  // Compare real paths: the project may be reached through a link.
  std::string at = plain_folder(folder);
  while (at.starts_with('/')) {
    LOCKSTEP_TRY_ASSIGN(auto found, environment_at(at));
    if (found || at == "/") return found;
    at.resize(at.rfind('/') == 0 ? 1 : at.rfind('/'));
  }
  return std::nullopt;
}

Status keep_environment(const std::string& folder, const Environment& environment) {
  const std::string plain = plain_folder(folder);
  LOCKSTEP_TRY(io::make_folders(folder_of_project(plain)));
  json record = codec::write_fields(environment);
  record["folder"] = plain;
  return io::keep_record(record_of_project(plain), codec::print_json(record) + "\n");
}

std::vector<std::string> variables_of(const Environment& environment,
                                      const std::vector<std::string>& own) {
  // The same variables that an activate script sets.
  std::vector<std::string> variables;
  const bool has_prefix =
      environment.kind == Environment::Kind::venv || environment.kind == Environment::Kind::conda;
  if (has_prefix)
    variables.push_back("PATH=" + in_front(environment.prefix + "/bin", value_in(own, "PATH")));
  if (environment.kind == Environment::Kind::venv)
    variables.push_back("VIRTUAL_ENV=" + environment.prefix);
  if (environment.kind == Environment::Kind::conda) {
    variables.push_back("CONDA_PREFIX=" + environment.prefix);
    variables.push_back("CONDA_DEFAULT_ENV=" + environment.prefix);
  }
  // PYTHONHOME would lead the environment's Python to the library of another Python. Python treats
  // an empty PYTHONHOME as unset.
  if (has_prefix && !value_in(own, "PYTHONHOME").empty()) variables.emplace_back("PYTHONHOME=");
  std::string path = value_in(own, "PYTHONPATH");
  // Backwards, so that the first folder ends up in front.
  for (auto each = environment.local.rbegin(); each != environment.local.rend(); ++each)
    path = in_front(*each, path);
  if (!environment.local.empty()) variables.push_back("PYTHONPATH=" + path);
  return variables;
}

Result<std::vector<std::string>> project_environment(const std::string& folder,
                                                     const std::vector<std::string>& own) {
  LOCKSTEP_TRY_ASSIGN(const auto found, find_environment(folder));
  return found ? variables_of(*found, own) : std::vector<std::string>{};
}

}  // namespace lockstep::setup
