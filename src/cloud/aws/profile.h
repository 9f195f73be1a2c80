// Reads profiles of AWS's own files, and keys that programs and services print. Pure.
#pragma once

#include "base/error.h"
#include "codec/ini.h"
#include "codec/sigv4.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

struct Keys {
  codec::SigV4Key key;
  std::int64_t expires_ms = 0;  // 0: never
  std::string from = {};        // for people: "AWS_ACCESS_KEY_ID"
  bool read = false;            // from a file or the environment, so we cannot renew them
};

// Returns a one-line warning if temporary keys end before `until_ms` (Unix time); empty: the keys
// last, or are renewed.
std::string keys_note(const Keys& keys, std::int64_t until_ms);

struct Profile {
  bool there = false;
  codec::SigV4Key key = {};
  std::string process = {};      // credential_process
  std::string role = {};         // role_arn
  std::string role_source = {};  // source_profile
  std::string credential_source = {};
  std::string external_id = {};
  std::string mfa = {};
  std::string region = {};
};

// Keys of ~/.aws/credentials win over those of ~/.aws/config.
Profile profile_of(const codec::Ini& credentials, const codec::Ini& config, std::string_view name);

// Splits the command of credential_process without a shell: words, quotes and backslashes only.
Result<std::vector<std::string>> command_words(std::string_view text);

// Parses keys as credential_process, `aws configure export-credentials` and the metadata service
// print them.
Result<Keys> parse_printed_keys(std::string_view json);
Result<Keys> parse_assumed_role(std::string_view xml);

}  // namespace lockstep::cloud::aws
