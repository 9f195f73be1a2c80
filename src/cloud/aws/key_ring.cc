#include "cloud/aws/key_ring.h"

#include "base/text.h"
#include "cloud/key_file.h"
#include "cloud/time_text.h"
#include "codec/url.h"
#include "io/fd.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::cloud::aws {
namespace {

constexpr int kMostRoles = 4;  // most roles in the chain of one profile

KeySourcePtr new_source(KeySource::Kind kind, std::string from) {
  auto source = std::make_shared<KeySource>();
  source->kind = kind;
  source->from = std::move(from);
  return source;
}

// Outside EC2 a request to 169.254.169.254 usually times out.
bool on_ec2() {
  const auto vendor = io::read_file("/sys/class/dmi/id/sys_vendor", 64);
  return vendor && strip(*vendor) == "Amazon EC2";
}

Result<Keys> keys_of_program(const KeySource& source) {
  auto output = proc::tool_output(source.program, proc::own_environment(),
                                  {.patience = std::chrono::seconds(60), .output = 64U << 10});
  if (!output) return tl::make_unexpected(std::move(output).error().within(source.from));
  if (!output->exit.ok())
    return fail(
        Errc::not_found,
        fmt::format("{}: {} ended with {}: {}", source.from, printable(source.program.front()),
                    output->exit.shell_code(), printable(strip(output->err), 300)));
  auto keys = parse_printed_keys(output->out);
  if (!keys) return tl::make_unexpected(std::move(keys).error().within(source.from));
  return keys;
}

}  // namespace

std::string KeyRing::env(std::string_view name) const {
  return ground_.env ? ground_.env(name).value_or("") : "";
}

Status KeyRing::find() {
  if (!looked_) {
    LOCKSTEP_TRY(look());
    looked_ = true;
  }
  if (sources_.empty())
    return fail(Errc::not_found, "no keys for AWS",
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of "
                "~/.aws/credentials or ~/.aws/config; `aws configure` makes one");
  return {};
}

Status KeyRing::look() {
  sources_.clear();
  loose_files_.clear();
  const std::string id = env("AWS_ACCESS_KEY_ID");
  const std::string secret = env("AWS_SECRET_ACCESS_KEY");
  if (id.empty() != secret.empty())
    return fail(Errc::invalid_input,
                fmt::format("{} is set and {} is not",
                            id.empty() ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                            id.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"),
                "set both, or none of them");
  if (!id.empty()) {
    codec::SigV4Key& key = add(KeySource::Kind::given, "AWS_ACCESS_KEY_ID").keys.key;
    key.id = id;
    key.secret = secret;
    key.session_token = env("AWS_SESSION_TOKEN");
    // `aws configure export-credentials --format env` prints this variable.
    sources_.back()->keys.expires_ms = parse_iso_time(env("AWS_CREDENTIAL_EXPIRATION")).value_or(0);
  }
  LOCKSTEP_TRY(look_in_profiles());
  add_exported();
  add_metadata();
  // The last one wins: AWS_REGION before AWS_DEFAULT_REGION before the profile's region.
  for (const char* name : {"AWS_DEFAULT_REGION", "AWS_REGION"})
    if (const std::string region = env(name); !region.empty()) region_ = region;
  if (region_.empty()) region_ = "us-east-1";
  return {};
}

Result<codec::Ini> KeyRing::read_settings(const char* variable, const char* path) {
  std::string file = env(variable);
  if (file.empty()) file = ground_.home + path;
  if (file.starts_with("~/")) file = ground_.home + file.substr(1);
  constexpr std::size_t kLimit = 256U << 10;
  const auto text = io::read_file(file, kLimit + 1);
  if (!text && text.error().code == Errc::not_found) return codec::Ini{};
  LOCKSTEP_TRY(text);
  // A file without a secret may be open to all users.
  if (text->find("aws_secret_access_key") != std::string::npos && is_exposed(file))
    loose_files_.push_back(file);
  return codec::parse_ini(*text, file, {.bytes = kLimit});
}

Status KeyRing::look_in_profiles() {
  std::string name = env("AWS_PROFILE");
  const bool asked = !name.empty();
  if (!asked) name = "default";
  const auto credentials = read_settings("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  const auto config = read_settings("AWS_CONFIG_FILE", "/.aws/config");
  // Keys of the environment need no files, so damaged files do no harm.
  for (const auto* file : {&credentials, &config})
    if (!*file && sources_.empty()) return tl::make_unexpected(file->error());
  if (!credentials || !config) return {};
  const Profile profile = profile_of(*credentials, *config, name);
  profile_found_ = profile.there;
  region_ = profile.region;
  if (!sources_.empty()) return {};
  if (asked && !profile.there)
    return fail(Errc::not_found,
                fmt::format("AWS_PROFILE is '{}', which is in neither ~/.aws/credentials nor "
                            "~/.aws/config",
                            printable(name)),
                "name another profile, or unset AWS_PROFILE");
  if (profile.key.id.empty() && profile.process.empty() && profile.role.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(KeySourcePtr source, source_of(*credentials, *config, name, 0));
  if (source) sources_.push_back(std::move(source));
  return {};
}

Result<KeySourcePtr> KeyRing::source_of(const codec::Ini& credentials, const codec::Ini& config,
                                        const std::string& name, int depth) const {
  Profile profile = profile_of(credentials, config, name);
  if (!profile.role.empty()) return role_source(credentials, config, name, profile, depth);
  auto source = new_source(KeySource::Kind::given, "AWS profile " + printable(name, 60));
  if (!profile.key.id.empty()) {
    source->keys.key = std::move(profile.key);
    return source;
  }
  if (profile.process.empty()) return KeySourcePtr();
  source->kind = KeySource::Kind::program;
  source->from += ", credential_process";
  auto words = command_words(profile.process);
  if (!words) return tl::make_unexpected(std::move(words).error().within(source->from));
  source->program = std::move(*words);
  return source;
}

Result<KeySourcePtr> KeyRing::role_source(const codec::Ini& credentials, const codec::Ini& config,
                                          const std::string& name, const Profile& profile,
                                          int depth) const {
  auto source = new_source(KeySource::Kind::role, "AWS profile " + printable(name, 60));
  if (depth == kMostRoles)
    return fail(Errc::invalid_input,
                source->from + ": the chain of source_profile is too long or circular");
  source->from += ", role_arn";
  source->profile = profile;
  KeySourcePtr base;
  // A one-time code must be typed, so leave the profile to the aws program.
  if (!profile.mfa.empty()) return base;
  if (profile.role_source == name) {
    // A profile may name itself as source: the profile then has keys beside its role.
    base = new_source(KeySource::Kind::given, source->from);
    base->keys.key = profile.key;
  } else if (!profile.role_source.empty()) {
    LOCKSTEP_TRY_ASSIGN(base, source_of(credentials, config, profile.role_source, depth + 1));
  } else if (profile.credential_source == "Ec2InstanceMetadata") {
    base = new_source(KeySource::Kind::metadata, source->from);
  }
  if (!base) return base;
  source->base = std::move(base);
  return source;
}

KeySource& KeyRing::add(KeySource::Kind kind, std::string from) {
  sources_.push_back(new_source(kind, std::move(from)));
  return *sources_.back();
}

// Adds the aws program, which alone supports SSO and some other logins.
void KeyRing::add_exported() {
  if (!sources_.empty()) return;
  const bool others = !env("AWS_WEB_IDENTITY_TOKEN_FILE").empty() ||
                      !env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
                      !env("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty();
  // Without a profile or a token file the program would find no login: do not start it.
  if (!profile_found_ && !others) return;
  const auto program = proc::find_executable("aws", env("PATH"));
  if (!program) return;
  add(KeySource::Kind::program, "aws configure export-credentials").program = {
      *program, "configure", "export-credentials", "--format", "process"};
}

void KeyRing::add_metadata() {
  const bool refused = to_lower(env("AWS_EC2_METADATA_DISABLED")) == "true";
  // Given keys are used or refused: never fall back to the machine's own role.
  const bool given = sources_.size() == 1 && sources_[0]->kind == KeySource::Kind::given;
  if (refused || given) return;
  if (env("AWS_EC2_METADATA_SERVICE_ENDPOINT").empty() && !on_ec2()) return;
  add(KeySource::Kind::metadata, "EC2 instance metadata");
}

Result<Keys> KeyRing::fetch(Web& web, const AssumeRole& assume) const {
  Result<Keys> keys = fail(Errc::not_found, "no keys for AWS");
  // The first source with keys wins.
  for (const KeySourcePtr& source : sources_) {
    keys = fetch_from(web, *source, assume);
    if (keys) return keys;
  }
  return keys;
}

Result<Keys> KeyRing::fetch_from(Web& web, const KeySource& source,
                                 const AssumeRole& assume) const {
  Result<Keys> keys = source.keys;
  switch (source.kind) {
    case KeySource::Kind::given:
      keys->read = true;
      break;
    case KeySource::Kind::program:
      keys = keys_of_program(source);
      break;
    case KeySource::Kind::metadata:
      keys = from_metadata(web);
      break;
    case KeySource::Kind::role:
      keys = fetch_from(web, *source.base, assume);
      if (keys) keys = assume(*keys, source.profile);
      break;
  }
  if (!keys) return keys;
  keys->from = source.from;
  return keys;
}

Result<Keys> KeyRing::from_metadata(Web& web) const {
  std::string base = env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (base.empty()) base = "http://169.254.169.254";
  while (base.ends_with('/'))
    base.pop_back();
  const auto ask = [&](const char* method, std::string target,
                       http::Field field) -> Result<std::string> {
    Reply reply = web.ask({.method = method,
                           .base = base,
                           .target = target,
                           .fields = {std::move(field)},
                           .body = {},
                           // The service runs beside the machine and answers at once if there is
                           // one.
                           .timeout = std::chrono::seconds(2),
                           .body_limit = 64U << 10,
                           .repeatable = true,
                           .shown = "EC2 instance metadata"});
    LOCKSTEP_TRY(reply.answer);
    if (reply.answer->head.status != 200)
      return fail(Errc::not_found, fmt::format("EC2 instance metadata: HTTP {} for {}",
                                               reply.answer->head.status, target));
    return std::string(strip(reply.answer->body));
  };
  // Version 2 of the metadata service: a PUT for a token comes before any question.
  LOCKSTEP_TRY_ASSIGN(const std::string token,
                      ask("PUT", "/latest/api/token",
                          {.name = "x-aws-ec2-metadata-token-ttl-seconds", .value = "300"}));
  const http::Field proof{.name = "x-aws-ec2-metadata-token", .value = printable(token, 2000)};
  const std::string path = "/latest/meta-data/iam/security-credentials/";
  LOCKSTEP_TRY_ASSIGN(const std::string role, ask("GET", path, proof));
  // The answer lists role names. The first line is this machine's role.
  const std::string name = codec::percent_code(role.substr(0, role.find('\n')).substr(0, 100));
  LOCKSTEP_TRY_ASSIGN(const std::string keys, ask("GET", path + name, proof));
  return parse_printed_keys(keys);
}

}  // namespace lockstep::cloud::aws
