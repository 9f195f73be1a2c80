// Test tool: parses the arguments like `lockstep run` and prints the result as one line of JSON,
// for a comparison with argparse.
#include "base/environment.h"
#include "cli/run_options.h"

#include <fmt/core.h>

#include <cstdio>

using lockstep::cli::Parsed;

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string as_json(const Parsed& parsed) {
  std::string values;
  for (const auto& [name, value] : parsed.values)
    values += fmt::format("{}{}: {}", values.empty() ? "" : ", ", quoted(name), quoted(value));
  std::string rest;
  for (const std::string& arg : parsed.script_args)
    rest += fmt::format("{}{}", rest.empty() ? "" : ", ", quoted(arg));
  return fmt::format(
      "{{\"rc\": 0, \"ended_by\": {}, \"values\": {{{}}}, \"script\": {}, \"rest\": [{}]}}",
      quoted(parsed.ended_by), values, parsed.script ? quoted(*parsed.script) : "null", rest);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto parsed =
      lockstep::cli::parse_options(lockstep::cli::run_table(), args, lockstep::env_variable);
  const std::string line =
      parsed ? as_json(*parsed)
             : fmt::format("{{\"rc\": {}, \"error\": {}, \"hint\": {}}}",
                           number(parsed.error().exit_code), quoted(parsed.error().error.message),
                           quoted(parsed.error().error.hint));
  std::puts(line.c_str());
  return 0;
}
