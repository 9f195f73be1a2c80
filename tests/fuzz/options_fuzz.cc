// Bytes split at NUL are argv for `lockstep run`. Whatever comes in, parsing ends, and what it
// accepts it has understood: the script and its arguments are the last words given.
#include "base/error.h"
#include "base/text.h"
#include "cli/run_options.h"
#include "cli/store_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using lockstep::cli::parse_options;
using lockstep::cli::Table;

void parse(const Table& table, const std::vector<std::string>& words) {
  // The first word also serves as every variable's value where it has an '=' in front.
  const bool use_env = !words.empty() && words[0].starts_with("=");
  const auto parsed =
      parse_options(table, words, [&](std::string_view) -> std::optional<std::string> {
        if (!use_env) return std::nullopt;
        return words[0].substr(1);
      });
  if (!parsed) {
    LOCKSTEP_CHECK(!parsed.error().error.message.empty());
    LOCKSTEP_CHECK(parsed.error().exit_code == lockstep::cli::ExitCode::failed ||
                   parsed.error().exit_code == lockstep::cli::ExitCode::usage);
    return;
  }
  const std::vector<std::string>& rest = parsed->script_args;
  LOCKSTEP_CHECK(rest.size() <= words.size());
  LOCKSTEP_CHECK(std::equal(rest.rbegin(), rest.rend(), words.rbegin()));
  LOCKSTEP_CHECK(parsed->script.has_value() ==
                 (table.operands == lockstep::cli::Operands::script && parsed->ended_by.empty()));
  if (parsed->script) (void)lockstep::cli::raw_options(table, *parsed);
  if (table.operands == lockstep::cli::Operands::none) (void)lockstep::cli::store_options(*parsed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> words = lockstep::split(bytes, '\0');
  parse(lockstep::cli::run_table(), words);
  parse(lockstep::cli::store_table(), words);
  return 0;
}
