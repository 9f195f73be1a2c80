// Implements AWS's description of Signature Version 4, step by step.
#include "codec/sigv4.h"

#include "base/text.h"
#include "codec/sha256.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <time.h>

#include <algorithm>
#include <map>

namespace lockstep::codec {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::size_t kDateLength = 8;  // the date in "20150830T123600Z"

using SignedHeaders = std::map<std::string, std::string>;  // by lower-case name

// Removes white space at both ends, and replaces each run of white space inside by one blank.
std::string trimmed(std::string_view value) {
  std::string out;
  for (const char c : strip(value)) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) out += c;
    if (space && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

SignedHeaders signed_headers(const SigV4Key& key, const SigV4Request& request) {
  SignedHeaders headers;
  const auto add = [&](std::string_view name, std::string_view value) {
    // AWS wants names in lower case and sorted, which the map does.
    const auto [at, is_new] = headers.try_emplace(to_lower(name), trimmed(value));
    // Sign several headers with the same name as a single header, in their order.
    if (!is_new) at->second += "," + trimmed(value);
  };
  add("host", request.host);
  add("x-amz-date", sigv4_time(request.unix_time));
  if (!key.session_token.empty()) add("x-amz-security-token", key.session_token);
  for (const auto& [name, value] : request.headers)
    add(name, value);
  return headers;
}

std::string signed_names(const SignedHeaders& headers) {
  std::string names;
  for (const auto& [name, value] : headers)
    names += (names.empty() ? "" : ";") + name;
  return names;
}

// Removes "." and "..", and joins repeated slashes.
std::string normal_path(std::string_view path) {
  std::vector<std::string> kept;
  for (std::string& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      kept.push_back(std::move(part));
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string normal = "/" + join(kept, "/");
  // A trailing slash is part of the path.
  if (path.ends_with('/') && !kept.empty()) normal += '/';
  return normal;
}

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> members;
  if (query.empty()) return {};
  for (const std::string& member : split(query, '&')) {
    const std::size_t mark = std::min(member.find('='), member.size());
    const auto coded = [](const std::string& text) {
      // Decode first: the query may be encoded already, and encoding it twice would break the
      // signature.
      return percent_code(percent_decode(text).value_or(text));
    };
    members.emplace_back(coded(member.substr(0, mark)),
                         coded(member.substr(std::min(mark + 1, member.size()))));
  }
  // AWS sorts by encoded name, then by encoded value.
  std::sort(members.begin(), members.end());
  std::string text;
  for (const auto& [name, value] : members)
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

}  // namespace

std::string sigv4_time(std::int64_t unix_time) {
  constexpr std::int64_t kEnd = 253402300800;  // the end of year 9999
  const time_t at = unix_time >= 0 && unix_time < kEnd ? unix_time : 0;
  tm utc{};
  gmtime_r(&at, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string sigv4_canonical(const SigV4Key& key, const SigV4Request& request) {
  const bool normalize = request.normalize == SigV4Request::Path::normalized;
  const SignedHeaders headers = signed_headers(key, request);
  std::string text =
      fmt::format("{}\n{}\n{}\n", request.method,
                  // The canonical request contains the percent-encoded form of the path as sent.
                  percent_code(normalize ? normal_path(request.path) : request.path, "/-._~"),
                  canonical_query(request.query));
  for (const auto& [name, value] : headers)
    text += fmt::format("{}:{}\n", name, value);
  return text + "\n" + signed_names(headers) + "\n" + hex(sha256(request.body));
}

HeaderFields sigv4_sign(const SigV4Key& key, const SigV4Request& request) {
  const std::string time = sigv4_time(request.unix_time);
  const std::string date = time.substr(0, kDateLength);
  const std::string scope =
      fmt::format("{}/{}/{}/aws4_request", date, request.region, request.service);
  const std::string to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, scope,
                                          hex(sha256(sigv4_canonical(key, request))));
  // The signing key is bound to date, region and service.
  std::string signing_key = "AWS4" + key.secret;
  for (const std::string_view part :
       {std::string_view(date), std::string_view(request.region), std::string_view(request.service),
        std::string_view("aws4_request")})
    signing_key = hmac_sha256(signing_key, part);
  HeaderFields added = {{"x-amz-date", time}};
  if (!key.session_token.empty()) added.emplace_back("x-amz-security-token", key.session_token);
  added.emplace_back("authorization",
                     fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm,
                                 key.id, scope, signed_names(signed_headers(key, request)),
                                 hex(hmac_sha256(signing_key, to_sign))));
  return added;
}

}  // namespace lockstep::codec
