#include "hosts/variables.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMostFile = 1UL << 20;
// The kernel's limit for one string of the environment (MAX_ARG_STRLEN). execve() there would fail
// with E2BIG and name no variable.
constexpr std::size_t kMostValue = 128UL << 10;

// Refuses names that a shell or program cannot refer to, or would split. Programs other than shells
// accept any further byte, so nothing else is refused.
Status check_name(std::string_view name) {
  const bool good = !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7F || c == '=';
  });
  if (good) return {};
  return fail(Errc::invalid_input,
              fmt::format("'{}' is not a valid variable name", printable(name)));
}

Status check_value(std::string_view name, std::string_view value) {
  // The environment holds C strings: the value would end at the 0 byte.
  if (value.find('\0') != std::string_view::npos)
    return fail(Errc::invalid_input,
                fmt::format("the value of {} contains a NUL byte", printable(name)));
  if (name.size() + value.size() + 2 > kMostValue)
    return fail(Errc::invalid_input,
                fmt::format("the value of {} is longer than 128 KiB", printable(name)));
  return {};
}

// Returns "NAME=value" for a text of that form, or for "NAME" with the value of the caller.
// nullopt: the caller has no such variable, which is allowed, as for docker.
Result<std::optional<std::string>> entry_of(std::string_view text, const OwnVariable& own) {
  const std::size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  LOCKSTEP_TRY(check_name(name));
  const auto value = equals == std::string_view::npos
                         ? own(name)
                         : std::optional<std::string>(text.substr(equals + 1));
  if (!value) return std::optional<std::string>();
  LOCKSTEP_TRY(check_value(name, *value));
  return std::optional<std::string>(name + "=" + *value);
}

// Adds an entry, or replaces the entry of the same name. An environment with a name twice is read
// differently by different programs.
void put(std::vector<std::string>& entries, std::string entry) {
  const std::string_view name = std::string_view(entry).substr(0, entry.find('=') + 1);
  const auto same = std::find_if(entries.begin(), entries.end(),
                                 [&](const std::string& known) { return known.starts_with(name); });
  if (same == entries.end()) return entries.push_back(std::move(entry));
  *same = std::move(entry);
}

Result<std::vector<std::string>> read_env_file(const std::string& path, const OwnVariable& own) {
  // Read a byte more than allowed: the surplus shows that the file is too long.
  auto read = io::read_file(path, kMostFile + 1);
  if (!read) return fail(Errc::invalid_input, "--env-file: " + read.error().message);
  const std::string& text = *read;
  if (text.size() > kMostFile)
    return fail(Errc::invalid_input,
                fmt::format("--env-file {}: the file is longer than 1 MiB", path));
  auto entries = parse_env_file(text, own);
  if (!entries) return Failure(std::move(entries).error().within("--env-file " + path));
  return entries;
}

}  // namespace

std::optional<std::string> own_variable(const std::string& name) {
  return env_variable(name);
}

Result<std::vector<std::string>> parse_env_file(std::string_view text, const OwnVariable& own) {
  // The UTF-8 byte order mark, which some editors write.
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::vector<std::string> entries;
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    std::string_view line = whole;
    // Editors on Windows write "\r\n". The '\r' would become part of the value.
    if (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\v\f\r"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    auto entry = entry_of(line, own);
    if (!entry) return Failure(std::move(entry).error().within(fmt::format("line {}", number)));
    if (*entry) put(entries, std::move(**entry));
  }
  return entries;
}

Result<std::vector<std::string>> variables_of(const GivenVariables& given, const OwnVariable& own) {
  std::vector<std::string> entries;
  // Files first, secrets last: a later entry replaces an earlier one.
  for (const std::string& file : given.files) {
    LOCKSTEP_TRY_ASSIGN(auto lines, read_env_file(file, own));
    for (std::string& line : lines)
      put(entries, std::move(line));
  }
  for (const std::string& text : given.env) {
    auto entry = entry_of(text, own);
    if (!entry) return Failure(std::move(entry).error().within("--env"));
    if (*entry) put(entries, std::move(**entry));
  }
  for (const std::string& name : given.secrets) {
    // The command line is in the shell's history and in `ps`. The message must not repeat the
    // value.
    if (name.find('=') != std::string::npos)
      return fail(Errc::invalid_input,
                  fmt::format("--secret {}=...: a secret's value is not given on the command line, "
                              "where others can read it",
                              printable(name.substr(0, name.find('=')))),
                  "set the variable and give only the name");
    if (Status good = check_name(name); !good)
      return Failure(std::move(good).error().within("--secret"));
    // A missing secret is an error, unlike a missing --env NAME: a job without the token would fail
    // much later.
    const auto value = own(name);
    if (!value)
      return fail(Errc::invalid_input,
                  fmt::format("--secret {}: the variable is not set here", name),
                  "export the variable, then run this again");
    LOCKSTEP_TRY(check_value(name, *value));
    put(entries, name + "=" + *value);
  }
  return entries;
}

}  // namespace lockstep::hosts
