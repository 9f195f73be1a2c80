#include "cloud/gcp/credentials.h"

#include "base/text.h"
#include "cloud/gcp/values.h"
#include "cloud/key_file.h"
#include "codec/ini.h"
#include "codec/json.h"
#include "io/fd.h"
#include "proc/spawn.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::size_t kFileLimit = 64UL << 10;
constexpr std::string_view kKeyFile = "GOOGLE_APPLICATION_CREDENTIALS";
constexpr std::array<const char*, 3> kProjectNames = {"GOOGLE_CLOUD_PROJECT",
                                                      "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"};

std::string env_of(const Ground& ground, std::string_view name) {
  return ground.env(name).value_or("");
}

std::string gcloud_folder(const Ground& ground) {
  const std::string set = env_of(ground, "CLOUDSDK_CONFIG");
  return set.empty() ? ground.home + "/.config/gcloud" : set;
}

Failure lacks(const std::string& where, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("{}: {}", where, what),
              "make a new key file, or run: gcloud auth application-default login");
}

// Returns whether a text is safe in the path of a URL.
bool is_project(std::string_view project) {
  return !project.empty() && project.size() <= 100 &&
         std::all_of(project.begin(), project.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == ':';
         });
}

// Returns the project that `gcloud config set project` has set.
std::string project_of_gcloud(const Ground& ground) {
  const std::string folder = gcloud_folder(ground);
  std::string name = env_of(ground, "CLOUDSDK_ACTIVE_CONFIG_NAME");
  if (name.empty())
    if (const auto active = io::read_file(folder + "/active_config", 256)) name = strip(*active);
  // The name becomes part of a path, so a slash must not pass.
  if (name.empty() || name.find('/') != std::string::npos) name = "default";
  const auto text =
      io::read_file(fmt::format("{}/configurations/config_{}", folder, name), kFileLimit);
  if (!text) return {};
  const auto ini = codec::parse_ini(*text, "gcloud's configuration");
  const codec::IniSection* core = ini ? ini->section("core") : nullptr;
  return core == nullptr ? std::string() : std::string(core->value("project"));
}

bool has_gcloud(const Ground& ground) {
  return proc::find_executable("gcloud", env_of(ground, "PATH")).has_value();
}

// Returns whether gcloud has a login. Looks at its files, since starting gcloud is slow.
bool uses_gcloud(const Ground& ground) {
  struct stat about {};
  return has_gcloud(ground) &&
         stat((gcloud_folder(ground) + "/credentials.db").c_str(), &about) == 0;
}

Result<Credentials> read_key_file(const std::string& path) {
  const auto text = io::read_file(path, kFileLimit);
  if (!text) return Failure(text.error());
  // The order: the variable, the file of `gcloud auth application-default login`, then gcloud.
  LOCKSTEP_TRY_ASSIGN(Credentials found, parse_credentials(*text, path));
  found.exposed = is_exposed(path);
  return found;
}

Result<Credentials> look_for_keys(const Ground& ground) {
  const std::string own = gcloud_folder(ground) + "/application_default_credentials.json";
  if (const std::string named = env_of(ground, kKeyFile); !named.empty()) {
    auto found = read_key_file(named);
    if (!found) return Failure(std::move(found).error().within(kKeyFile));
    return found;
  }
  auto found = read_key_file(own);
  // Report a damaged file. Never fall back silently to a login of another account.
  if (found || found.error().code != Errc::not_found) return found;
  if (!uses_gcloud(ground))
    return fail(Errc::not_found,
                fmt::format("no keys: neither {} nor {} nor a login of gcloud", kKeyFile, own));
  // gcloud supports logins that have no file for other programs.
  return Credentials{.where = "gcloud"};
}

}  // namespace

Result<Credentials> parse_credentials(std::string_view text, const std::string& where) {
  const nlohmann::json file = codec::parse_json(text);
  if (!file.is_object()) return lacks(where, "not a key file of Google");
  Credentials found{.where = where,
                    .project = text_at(file, "project_id"),
                    .email = text_at(file, "client_email"),
                    .private_key = text_at(file, "private_key"),
                    .key_id = text_at(file, "private_key_id"),
                    .token_uri = text_at(file, "token_uri"),
                    .client_id = text_at(file, "client_id"),
                    .client_secret = text_at(file, "client_secret"),
                    .refresh_token = text_at(file, "refresh_token"),
                    .quota_project = text_at(file, "quota_project_id")};
  // Use the file's own token endpoint if there is one: a test server can then stand in.
  if (found.token_uri.empty()) found.token_uri = kTokenUri;
  const std::string type = text_at(file, "type");
  if (type == "service_account") {
    found.kind = Credentials::Kind::service_account;
    if (found.email.empty() || found.private_key.empty())
      return lacks(where, "a service account's file without client_email or private_key");
  } else if (type == "authorized_user") {
    found.kind = Credentials::Kind::authorized_user;
    if (found.client_id.empty() || found.client_secret.empty() || found.refresh_token.empty())
      return lacks(where, "a user's file without client_id, client_secret or refresh_token");
  } else if (type.empty()) {
    return lacks(where, "not a key file of Google: the type is missing");
  }
  return found;
}

Result<Credentials> find_credentials(const Ground& ground) {
  LOCKSTEP_TRY_ASSIGN(Credentials found, look_for_keys(ground));
  if (found.kind == Credentials::Kind::gcloud && !has_gcloud(ground))
    return fail(
        Errc::invalid_input,
        fmt::format("{}: keys of this type need gcloud, which is not installed", found.where),
        "install gcloud, or set GOOGLE_APPLICATION_CREDENTIALS to a service account's file");
  // The environment wins over files, and files over gcloud's setting.
  for (const char* name : kProjectNames)
    if (const std::string named = env_of(ground, name); !named.empty()) {
      found.project = named;
      break;
    }
  if (found.project.empty()) found.project = project_of_gcloud(ground);
  if (found.project.empty()) found.project = found.quota_project;
  if (!is_project(found.project))
    return fail(
        Errc::invalid_input,
        found.project.empty()
            ? fmt::format("{}: there are keys, but no project is named", found.where)
            : fmt::format("'{}' cannot be the name of a project", printable(found.project, 60)),
        "set GOOGLE_CLOUD_PROJECT, or run: gcloud config set project PROJECT");
  return found;
}

}  // namespace lockstep::cloud::gcp
