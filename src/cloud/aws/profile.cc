#include "cloud/aws/profile.h"

#include "base/text.h"
#include "cloud/time_text.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "codec/xml.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::cloud::aws {
namespace {

struct ProfileMember {
  std::string_view name;
  std::string Profile::*to;
};

// Settings of a profile, by their names in AWS's files.
constexpr std::array<ProfileMember, 7> kProfileMembers{{
    {"credential_process", &Profile::process},
    {"role_arn", &Profile::role},
    {"source_profile", &Profile::role_source},
    {"credential_source", &Profile::credential_source},
    {"external_id", &Profile::external_id},
    {"mfa_serial", &Profile::mfa},
    {"region", &Profile::region},
}};

void take_section(const codec::IniSection* section, Profile& profile) {
  if (section == nullptr) return;
  profile.there = true;
  for (const ProfileMember& member : kProfileMembers)
    if (const auto value = section->value(member.name); !value.empty()) profile.*member.to = value;
  // Take id and secret from the same file: a mixed pair would not work.
  const auto id = section->value("aws_access_key_id");
  const auto secret = section->value("aws_secret_access_key");
  if (id.empty() || secret.empty()) return;
  profile.key = {.id = std::string(id),
                 .secret = std::string(secret),
                 .session_token = std::string(section->value("aws_session_token"))};
}

// Splits a command into words, one character at a time, inside and outside quotes.
struct WordReader {
  std::vector<std::string> words;
  char quote = 0;
  bool escaped = false;
  bool in_word = false;

  void take(char c) {
    const bool space = c == ' ' || c == '\t';
    // Quotes and backslashes as in a shell: a backslash is literal inside single quotes.
    if (escaped) {
      escaped = false;
    } else if (c == '\\' && quote != '\'') {
      escaped = true;
      return begin();
    } else if (quote != 0 && c == quote) {
      quote = 0;
      return;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      return begin();
    } else if (quote == 0 && space) {
      in_word = false;
      return;
    }
    begin();
    words.back() += c;
  }

  void begin() {
    if (!in_word) words.emplace_back();
    in_word = true;
  }
};

Result<Keys> keys_with_expiration(Keys keys, std::string_view expiration) {
  if (keys.key.id.empty() || keys.key.secret.empty())
    return fail(Errc::invalid_input, "AccessKeyId or SecretAccessKey is missing");
  if (expiration.empty()) return keys;
  const auto expires = parse_iso_time(expiration);
  if (!expires)
    return fail(Errc::invalid_input, fmt::format("Expiration must be a time such as "
                                                 "2026-01-31T12:00:00Z (got '{}')",
                                                 printable(expiration, 40)));
  keys.expires_ms = *expires;
  return keys;
}

}  // namespace

std::string keys_note(const Keys& keys, std::int64_t until_ms) {
  // Roles, programs and the metadata service give new keys before the present keys expire.
  if (!keys.read || keys.key.session_token.empty()) return {};
  if (keys.expires_ms > until_ms) return {};
  const std::string when = keys.expires_ms > 0 ? fmt::format("end {}", iso_time(keys.expires_ms))
                                               : std::string("end at an unknown time");
  const bool of_file = keys.from.starts_with("AWS profile");
  return fmt::format(
      "the keys of {} are temporary and {}, and these machines may run until {}: {}", keys.from,
      when, iso_time(until_ms),
      of_file ? "renew the keys in the file before that; lockstep reads the file again"
              : "give AWS_PROFILE in their place, whose keys are read again, or this command can "
                "end no machine after that");
}

Profile profile_of(const codec::Ini& credentials, const codec::Ini& config, std::string_view name) {
  Profile profile;
  // ~/.aws/config writes [profile NAME], but [default] without that word. Credentials come last,
  // since ~/.aws/credentials wins.
  take_section(config.section(fmt::format("profile {}", name)), profile);
  if (name == "default" && !profile.there) take_section(config.section(name), profile);
  take_section(credentials.section(name), profile);
  return profile;
}

Result<std::vector<std::string>> command_words(std::string_view text) {
  WordReader reader;
  for (const char c : text)
    reader.take(c);
  if (reader.quote != 0 || reader.escaped)
    return fail(Errc::invalid_input, "a quote or a backslash at its end is left open");
  if (reader.words.empty()) return fail(Errc::invalid_input, "it is empty");
  return std::move(reader.words);
}

Result<Keys> parse_printed_keys(std::string_view json) {
  const nlohmann::json parsed = codec::parse_json(json, {.bytes = 64U << 10});
  if (!parsed.is_object()) return fail(Errc::invalid_input, "it is not a JSON object");
  Keys keys{.key = {.id = codec::text_member(parsed, "AccessKeyId"),
                    .secret = codec::text_member(parsed, "SecretAccessKey"),
                    .session_token = codec::text_member(parsed, "SessionToken")}};
  // The metadata service calls the session token "Token".
  if (keys.key.session_token.empty()) keys.key.session_token = codec::text_member(parsed, "Token");
  return keys_with_expiration(std::move(keys), codec::text_member(parsed, "Expiration"));
}

Result<Keys> parse_assumed_role(std::string_view xml) {
  LOCKSTEP_TRY_ASSIGN(const codec::XmlNode root, codec::parse_xml(xml));
  const codec::XmlNode* found = root.child("AssumeRoleResult/Credentials");
  if (found == nullptr) return fail(Errc::invalid_input, "Credentials are missing");
  return keys_with_expiration({.key = {.id = std::string(found->text("AccessKeyId")),
                                       .secret = std::string(found->text("SecretAccessKey")),
                                       .session_token = std::string(found->text("SessionToken"))}},
                              found->text("Expiration"));
}

}  // namespace lockstep::cloud::aws
